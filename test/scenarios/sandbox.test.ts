// What a new user sees on a laptop: a gateway without configuration, the callees of the sandbox,
// signed notifications, events on NATS, the context, and the view of interactions.

import { beforeAll, describe, expect, test } from 'vitest';
import { verify } from '../../src/notifier/webhooks.ts';
import { taskCoversOnAny } from '../specification/covers.ts';
import { makeSeededDataDir } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { startGateway } from '../support/gateway-process.ts';
import { type Laptop, startLaptop } from '../support/laptop.ts';
import { forSuite } from '../support/opened.ts';
import { glance, signatureIsRight } from '../support/receiver.ts';
import { ticksLateOf, undisturbed } from '../support/undisturbed.ts';

const numbers = {
  person: 'tel:+12025550100',
  personHangsUp: 'tel:+12025550101',
  personStays: 'tel:+12025550102',
  personAfterRingback: 'tel:+12025550103',
  voicemail: 'tel:+12025550110',
  voicemailNoBeep: 'tel:+12025550111',
  fax: 'tel:+12025550112',
  silence: 'tel:+12025550120',
  noAnswer: 'tel:+12025550121',
} as const;

let receiver: Laptop['receiver'];
let gateway: Laptop['gateway'];
let nats: Laptop['nats'];
let events: Laptop['events'];
let dial: Laptop['dial'];

const laptop = forSuite(startLaptop);
beforeAll(async () => {
  ({ receiver, gateway, nats, events, dial } = laptop);
});

async function story(target: string, more: Record<string, unknown> = {}) {
  const { callId } = await dial(target, more);
  return receiver.untilEnded(callId);
}

const ticksLate = (): Promise<number> => ticksLateOf(gateway.runtime);

/**
 * Places a call and expects these notifications. The call is repeated if the gateway stood still.
 */
function storyOf(target: string, expected: readonly string[], more: Record<string, unknown> = {}) {
  return undisturbed(ticksLate, async () => {
    const all = await story(target, more);
    expect(glance(all)).toEqual(expected);
    return all;
  });
}

/**
 * Waits for the end of the call on NATS. The receiver gets its notification over another
 * connection, so either may be first.
 */
async function untilEndIsPublished(callId: string): Promise<void> {
  const isEnd = ({ type }: Laptop['events'][number]) => type === 'completed' || type === 'failed';
  const isOver = () => events.some((event) => event.callId === callId && isEnd(event));
  await eventually(isOver, 'the end of the call is published');
}

// The time-out is three times as long as a call takes.
describe('the callees of the sandbox', { concurrent: true, timeout: 120_000 }, () => {
  test('a person', async ({ task }) => {
    taskCoversOnAny(
      task,
      'notifications.amd.rule.all-by-default',
      'notifications.amd.rule.amd_human_detected',
      'notifications.amd.rule.amd_stopped',
      'notifications.amd.rule.present-when-enabled',
      'dialout.start.rule.detect',
    );
    const expected = ['Answered', 'amd_human_detected', 'amd_stopped', 'completed'];
    const { callId, sid, conversationId, all } = await undisturbed(ticksLate, async () => {
      const placed = await dial(numbers.person, {
        metadata: { customer: '4711' },
        notifyHeaders: { 'X-Campaign': 'spring' },
      });
      const notified = await receiver.untilEnded(placed.callId);
      expect(glance(notified)).toEqual(expected);
      return { ...placed, all: notified };
    });

    expect(all.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4]);
    for (const body of all)
      expect(body).toMatchObject({
        callId,
        sid,
        conversationId,
        botId: 'bot-1',
        callConnectTime: all[0]?.['callConnectTime'],
      });
    expect(all.at(-1)).toMatchObject({
      machineDetection: 'amd_human_detected',
      reasonCode: 'Caller-disconnected',
    });
    // The person hangs up 8 s after the answer by the callee's clock. On a machine that stands
    // still, the gateway notices it later.
    const exactMs = Number(all.at(-1)?.['callDurationMs']);
    expect(exactMs).toBeGreaterThan(7_500);
    const seconds = Math.round(exactMs / 1_000);
    expect(all.at(-1)).toMatchObject({ callDuration: seconds, duration: String(seconds) });
    expect(
      Date.parse(String(all.at(-1)?.['callDisconnectTime'])) -
        Date.parse(String(all.at(-1)?.['callConnectTime'])),
    ).toBe(exactMs);

    const secret = gateway.dialer.app.webhookSecret;
    for (const received of receiver.accepted().filter((entry) => entry.body.callId === callId)) {
      expect(signatureIsRight(received, secret)).toBe(true);
      expect(
        verify(received.rawBody, received.headers['gateway-signature'] as string, [secret]),
      ).toMatchObject({ ok: true });
      expect(received.headers).toMatchObject({
        'x-campaign': 'spring',
        'webhook-id': received.body.eventId,
        'content-type': 'application/json',
      });
    }

    const context = await gateway.dialer.context(callId);
    expect(context.body).toMatchObject({
      session: { UserSession: { amd: ['amd_human_detected', 'amd_stopped'] } },
      metadata: { customer: '4711' },
    });
    await untilEndIsPublished(callId);
    const own = events.filter((event) => event.callId === callId);
    expect(own.map(({ type }) => type)).toEqual([
      'queued',
      'dialing',
      'ringing',
      'answered',
      'amd',
      'amd',
      'completed',
    ]);
    expect(own.map(({ eventSequence }) => eventSequence)).toEqual([1, 2, 3, 4, 5, 6, 7]);
    expect(JSON.stringify(own)).not.toContain('X-Campaign');
  });

  test('a person who hangs up', async () => {
    const expected = ['Answered', 'amd_human_detected', 'amd_stopped', 'completed'];
    const all = await storyOf(numbers.personHangsUp, expected);

    expect(all.at(-1)).toMatchObject({
      status: 'completed',
      reasonCode: 'Caller-disconnected',
      machineDetection: 'amd_human_detected',
    });
  });

  test('a person after ringback in early media, which does not start the clock', async () => {
    const expected = ['Answered', 'amd_human_detected', 'amd_stopped', 'completed'];
    const all = await storyOf(numbers.personAfterRingback, expected);

    expect(all[0]?.['ringDurationInMS']).toBeGreaterThan(4_000);
  });

  test('a voicemail with a beep', async ({ task }) => {
    taskCoversOnAny(
      task,
      'notifications.amd.rule.amd_machine_detected',
      'notifications.amd.rule.amd_machine_stopped_speaking',
      'notifications.amd.rule.amd_tone_detected',
    );
    await storyOf(numbers.voicemail, [
      'Answered',
      'amd_machine_detected',
      'amd_machine_stopped_speaking',
      'amd_tone_detected',
      'amd_stopped',
      'completed',
    ]);
  });

  test('a voicemail without a beep', async () => {
    await storyOf(numbers.voicemailNoBeep, [
      'Answered',
      'amd_machine_detected',
      'amd_machine_stopped_speaking',
      'amd_stopped',
      'completed',
    ]);
  });

  test('a fax', async () => {
    await undisturbed(ticksLate, async () => {
      const all = await story(numbers.fax);

      expect(glance(all)).toEqual(expect.arrayContaining(['amd_machine_detected', 'amd_stopped']));
    });
  });

  test('silence: no speech is reported, and the call stays until the dialer ends it', async ({
    task,
  }) => {
    taskCoversOnAny(task, 'notifications.amd.rule.amd_no_speech_detected');
    const { callId } = await dial(numbers.silence);
    await eventually(
      () => glance(receiver.of(callId)).includes('amd_stopped'),
      'detection has stopped',
      20_000,
    );
    await gateway.dialer.end(callId);

    expect(glance(await receiver.untilEnded(callId))).toEqual([
      'Answered',
      'amd_no_speech_detected',
      'amd_stopped',
      'completed',
    ]);
  });

  test('the phone is not answered', async () => {
    expect(await story(numbers.noAnswer, { timeoutInMs: 2_000 })).toMatchObject([
      { status: 'Failed', reason: 'Ring time-out', outcome: 'no-answer' },
    ]);
  });

  test.each([
    ['tel:+12025550130', '486 Busy Here', 'Busy here'],
    ['tel:+12025550131', '603 Decline', 'Temporarily Unavailable'],
    ['tel:+12025550132', '480 Temporarily Unavailable', 'Temporarily Unavailable'],
    ['tel:+12025550133', '503 Service Unavailable', 'Service Unavailable'],
    ['tel:+12025550134', '404 Not Found', 'Service Unavailable'],
    ['tel:+12025550199', '404 Not Found', 'Service Unavailable'],
  ])('%s: %s', async (target, reason, reasonCode) => {
    expect(await story(target)).toMatchObject([
      { status: 'Failed', reason, reasonCode, sequence: 1 },
    ]);
  });

  test('analytics of a carrier block the caller ID', async () => {
    const [failed] = await story('tel:+12025550135');
    const raw =
      'SIP;cause=603;text="v=analytics1;url=https://redress.example.com/blocked;tel=+12025550199;id=sandbox";location=RLN';
    const why = {
      ...{ sipStatus: 603, outcome: 'blocked', reasonCode: 'Service Unavailable' },
      reason: '603 Network Blocked',
      cause: { sip: 603 },
      block: {
        by: 'redress.example.com',
        url: 'https://redress.example.com/blocked',
        ...{ tel: '+12025550199', id: 'sandbox', location: 'RLN', raw },
      },
    };
    const { callId = '' } = failed ?? {};
    await untilEndIsPublished(callId);

    expect(failed).toMatchObject({ status: 'Failed', ...why });
    expect(
      events.find((event) => event.callId === callId && event.type === 'failed'),
    ).toMatchObject({ data: why });
    const listed = { callId, fault: 'carrier', ...why };
    const { body } = await gateway.dialer.list('?outcome=blocked');
    // The next test has calls blocked at the same time.
    const calls = (body as { readonly calls: readonly { readonly callId: string }[] }).calls;
    expect(calls.find((call) => call.callId === callId)).toMatchObject(listed);
    expect((await gateway.dialer.call(callId)).body).toMatchObject(listed);
    const metrics = await (await fetch(`${gateway.runtime.httpUrl}/metrics`)).text();
    expect(metrics).toMatch(
      /^offhook_calls_ended_total\{outcome="blocked",fault="carrier"\} [1-9]/m,
    );
  });

  test('a caller ID that carriers block is found, by the metric of the alert and by its number', async () => {
    const caller = '+12125550142';
    // A caller ID counts from 20 calls on.
    const calls = Array.from({ length: 20 }, () => story('tel:+12025550135', { caller }));
    await Promise.all(calls);

    const metrics = await (await fetch(`${gateway.runtime.httpUrl}/metrics`)).text();
    expect(metrics).toMatch(/^offhook_trunk_caller_blocked_ratio\{trunk="sandbox"\} 1$/m);
    expect(metrics).not.toContain('12125550142');
    const { body } = await gateway.dialer.list('/callers');
    const { callers } = body as { readonly callers: readonly { readonly caller: string }[] };
    expect(callers[0]).toEqual({
      ...{
        caller: '12125550142',
        accepted: 20,
        answered: 0,
        short: 0,
        blocked: 20,
        blockedShare: 1,
      },
    });
  });

  test('a callee that hangs up says why', async () => {
    const end = (await story(numbers.personHangsUp, { machineDetection: 'disabled' })).at(-1);

    expect(end).toMatchObject({
      status: 'completed',
      cause: { q850: 16, text: 'Normal call clearing' },
    });
    expect((await gateway.dialer.call(String(end?.callId))).body).toMatchObject({
      cause: { q850: 16, text: 'Normal call clearing' },
    });
  });

  test('disconnect mode hangs up on a voicemail and marks the interaction', async ({ task }) => {
    taskCoversOnAny(
      task,
      'dialout.start.rule.disconnect',
      'dialout.interaction.rule.machineDetected-machine',
    );
    const expected = ['Answered', 'amd_machine_detected', 'amd_stopped', 'completed'];
    const all = await storyOf(numbers.voicemail, expected, { machineDetection: 'disconnect' });

    expect(all.at(-1)).toMatchObject({
      reasonCode: 'Bot-disconnected',
      outcome: 'machine',
      machineDetection: 'amd_machine_detected',
    });
    const view = (await gateway.dialer.list('?status=machineDetected')).body as {
      calls: { callId: string }[];
    };
    expect(view.calls.map((call) => call.callId)).toContain(all[0]?.callId);
    for (const { callId } of view.calls) {
      expect(receiver.of(callId).at(-1)).toMatchObject({ outcome: 'machine' });
    }
  });

  test('an empty subscription: no AMD notification, the same events on NATS', async ({ task }) => {
    taskCoversOnAny(task, 'notifications.amd.rule.opt-out');
    const { callId } = await dial(numbers.personHangsUp, { amdEventsSubscription: [] });

    expect(glance(await receiver.untilEnded(callId))).toEqual(['Answered', 'completed']);
    await untilEndIsPublished(callId);
    expect(
      events.filter((event) => event.callId === callId && event.type === 'amd'),
    ).not.toHaveLength(0);
  });

  test('without detection: no AMD event at all', async ({ task }) => {
    taskCoversOnAny(task, 'dialout.start.rule.disabled');
    const { callId } = await dial(numbers.personHangsUp, { machineDetection: 'disabled' });

    expect(glance(await receiver.untilEnded(callId))).toEqual(['Answered', 'completed']);
    await untilEndIsPublished(callId);
    expect(events.filter((event) => event.callId === callId).map(({ type }) => type)).not.toContain(
      'amd',
    );
  });
});

describe('while a call is up', { timeout: 120_000 }, () => {
  test('it ends when it has reached the maximum duration of its request', async () => {
    const maxDurationMs = 1_500;
    const { callId } = await dial(numbers.personStays, {
      ...{ maxDurationMs, machineDetection: 'disabled' },
    });
    const end = (await receiver.untilEnded(callId)).at(-1);

    expect(end).toMatchObject({
      ...{ status: 'completed', outcome: 'completed', reasonCode: 'Gateway-disconnected' },
      reason: 'Maximum call duration reached',
    });
    // Node rounds a timer down to whole milliseconds, so it may fire one before the clock.
    expect(Number(end?.['callDurationMs'])).toBeGreaterThanOrEqual(maxDurationMs - 1);
  });

  test('a bot hangs up by a request on NATS', async () => {
    const { callId } = await dial(numbers.personStays);
    await eventually(() => receiver.of(callId).length > 0, 'the call is answered');
    const reply = await nats.request(`offhook.command.${callId}`, '{"command":"hangup"}', {
      timeout: 30_000,
    });

    expect(reply.json()).toMatchObject({ ok: true });
    expect((await receiver.untilEnded(callId)).at(-1)).toMatchObject({
      reasonCode: 'Bot-disconnected',
    });
  });

  test('a second DELETE is harmless, and an unknown call a 404', async () => {
    const { callId } = await dial(numbers.personStays);
    await eventually(() => receiver.of(callId).length > 0, 'the call is answered');
    const first = await gateway.dialer.end(callId);
    await receiver.untilEnded(callId);
    const second = await gateway.dialer.end(callId);
    const unknown = await gateway.dialer.end('call-00000000-0000-4000-8000-000000000000');

    expect([first.status, second.status, unknown.status]).toEqual([200, 200, 404]);
  });

  test('each answer shows a number without + as it is dialled, and names unknown members', async () => {
    const request = {
      ...{ target: 'tel:2025550101', defaultCountry: 'US', language: 'en' },
      notifyurl: receiver.url,
    };
    const headers = { 'idempotency-key': 'order-18' };
    const first = await gateway.dialer.post(request, headers);
    const { defaultCountry: _country, ...others } = request;
    const again = await gateway.dialer.post(
      { ...others, target: numbers.personHangsUp, theme: 'spring' },
      headers,
    );

    expect(first.body).toEqual({
      ...{ sid: expect.any(String), callId: expect.any(String) },
      ...{ conversationId: expect.any(String), target: numbers.personHangsUp },
      ignored: ['language'],
    });
    expect(again.headers['idempotent-replayed']).toBe('true');
    expect(again.body).toEqual(first.body);
    await receiver.untilEnded((first.body as { callId: string }).callId);
  });

  test('an idempotency key places one call', async () => {
    const request = { target: numbers.personHangsUp, notifyurl: receiver.url };
    const headers = { 'idempotency-key': 'order-17' };
    const [first, again] = await Promise.all([
      gateway.dialer.post(request, headers),
      gateway.dialer.post(request, headers),
    ]);
    const other = await gateway.dialer.post({ ...request, target: numbers.person }, headers);

    expect(first.body).toEqual(again.body);
    expect(
      [first, again].filter((answer) => answer.headers['idempotent-replayed'] === 'true'),
    ).toHaveLength(1);
    expect(other.status).toBe(409);
    const view = (await gateway.dialer.list('?idempotencyKey=order-17')).body as {
      calls: unknown[];
    };
    expect(view.calls).toHaveLength(1);
    await receiver.untilEnded((first.body as { callId: string }).callId);
  });

  test('a bot can hang up while the gateway drains, and a repeated request gets the first answer', async () => {
    const own = await startLaptop({ SHUTDOWN_TIMEOUT_MS: '60000' });
    const body = { target: numbers.personStays, notifyurl: own.receiver.url };
    const key = { 'idempotency-key': 'order-17' };
    const { callId } = await own.gateway.dialer.dial(body, key);
    await eventually(() => own.receiver.of(callId).length > 0, 'the call is answered');
    own.gateway.child.kill('SIGTERM');
    const isDraining = async () =>
      (await fetch(`${own.gateway.runtime.httpUrl}/ready`)).status === 503;
    await eventually(isDraining, 'the gateway is shutting down');
    // Everything that stops at the start of the drain has stopped by now.
    await expect(own.dial(numbers.person)).rejects.toThrow();
    const repeated = await own.gateway.dialer.post(body, key);
    expect(repeated).toMatchObject({ status: 200, body: { callId } });
    const reply = await own.nats.request(`offhook.command.${callId}`, '{"command":"hangup"}', {
      timeout: 30_000,
    });

    expect(reply.json()).toMatchObject({ ok: true });
    expect((await own.receiver.untilEnded(callId)).at(-1)).toMatchObject({
      reasonCode: 'Bot-disconnected',
    });
    await own.close();
  });

  test('SIGTERM ends it: completed, Gateway-disconnected, exit code 0', async () => {
    const ownDataDir = await makeSeededDataDir();
    const own = await startGateway(ownDataDir.path);
    const { callId } = await own.dialer.dial({
      target: numbers.personStays,
      notifyurl: receiver.url,
    });
    await eventually(() => receiver.of(callId).length > 0, 'the call is answered');
    const code = await own.terminate();

    expect(code).toBe(0);
    expect((await receiver.untilEnded(callId)).at(-1)).toMatchObject({
      status: 'completed',
      reasonCode: 'Gateway-disconnected',
      reason: 'Gateway shut down',
    });
    await ownDataDir.remove();
  });
});
