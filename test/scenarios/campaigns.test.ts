// A campaign on a running gateway: people whom nobody talks to are counted as abandoned, the
// campaign's calls then wait, and an announcement is played to the person.

import { afterAll, describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { makeDataDir, startGateway } from '../support/gateway-process.ts';
import { forSuite } from '../support/opened.ts';

const folder = forSuite(makeDataDir);
const gateway = forSuite(
  () => startGateway(folder.path),
  (opened) => opened.terminate(),
);

/** Answers, says hello, and waits. */
const person = 'tel:+12025550100';

async function api(method: string, path: string, body?: unknown) {
  const { runtime, dialer } = gateway;
  const response = await fetch(`${runtime.httpUrl}/api/public/${path}`, {
    method,
    headers: { auth: dialer.token, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

async function dial(request: object): Promise<string> {
  const { callId } = await gateway.dialer.dial({
    ...{ target: person, caller: '+12025550199', machineDetection: 'detect' },
    ...request,
  });
  return callId;
}

const call = async (callId: string) => (await api('GET', `calls/${callId}`)).body;

async function isCounted(line: string): Promise<boolean> {
  const metrics = await fetch(`${gateway.runtime.httpUrl}/metrics`);
  return (await metrics.text()).split('\n').includes(line);
}

const setRules = (hold: boolean) =>
  api('PUT', 'rules/default', {
    connected: 'bot-or-agent',
    abandoned: { formula: 'ftc', most: 3, allow: 0, hold },
  });

afterAll(() => api('DELETE', 'rules/default'));

describe('a campaign whose calls nobody talks to', () => {
  test('has its abandoned calls in its figures, and in the last notification', async () => {
    await setRules(false);
    const callId = await dial({ campaign: 'silent' });
    await eventually(
      async () => (await api('GET', 'campaigns/silent')).body['ftc'] !== undefined,
      'the campaign has begun',
    );
    await eventually(async () => {
      const { ftc } = (await api('GET', 'campaigns/silent')).body as CampaignBody;
      return ftc.windows[0]?.abandoned === 1;
    }, 'the call is abandoned');
    await api('DELETE', `bot/bot-1/calls/${callId}`);
    await eventually(async () => (await call(callId))['status'] === 'completed', 'the call ends');

    const { body } = await api('GET', 'campaigns/silent');
    expect(body).toMatchObject({
      ...{ campaign: 'silent', ruleSet: 'default', held: null },
      ftc: { windows: [{ answeredByPerson: 1, abandoned: 1, connected: 0, percent: 100 }] },
      ofcom: { falseMachineRate: null, windows: [{ answeredByPerson: 1, abandoned: 1 }] },
    });
    const { timeline: events } = (await call(callId)) as CallBody;
    const abandoned = events.find(({ type }) => type === 'abandoned');
    expect(abandoned?.data).toMatchObject({ formula: 'ftc', missing: 'bot-or-agent' });
    expect(events.at(-1)?.data).toMatchObject({ abandoned: true });
  });

  test('waits once too many were abandoned, and says so', async () => {
    await setRules(true);
    const first = await dial({ campaign: 'held' });
    await eventually(async () => {
      const { ftc } = (await api('GET', 'campaigns/held')).body as CampaignBody;
      return ftc?.windows[0]?.abandoned === 1;
    }, 'the first call is abandoned');
    await api('DELETE', `bot/bot-1/calls/${first}`);
    const second = await dial({ campaign: 'held' });
    await eventually(
      async () => (await call(second))['waitsFor'] !== undefined,
      'the second call waits',
    );

    expect((await call(second))['waitsFor']).toMatchObject({ rule: 'abandoned-rate' });
    expect((await api('GET', 'campaigns/held')).body['held']).toMatchObject({
      rule: 'abandoned-rate',
    });

    // A call that waits longer than its queue time-out ends, and is counted.
    await dial({ campaign: 'held', queueTimeoutMs: 1_000 });
    await eventually(
      () => isCounted('offhook_calls_not_permitted_total{rule="abandoned-rate"} 1'),
      'the third call ends as not permitted',
    );

    // So is a call that the application hangs up while it waits.
    const waiting = await dial({ campaign: 'held' });
    await api('DELETE', `bot/bot-1/calls/${waiting}`);
    await eventually(
      () => isCounted('offhook_calls_ended_total{outcome="cancelled",fault="caller"} 1'),
      'the fourth call ends as cancelled',
    );

    // Without the limit, the call is released at once.
    await setRules(false);
    await eventually(
      async () => (await call(second))['waitsFor'] === undefined,
      'the second call is released',
    );
    await api('DELETE', `bot/bot-1/calls/${second}`);
  });
});

type CampaignBody = {
  readonly ftc: { readonly windows: readonly { readonly abandoned: number }[] };
};

type CallBody = {
  readonly timeline: readonly { readonly type: string; readonly data: unknown }[];
};
