// The whole gateway against sipp: what an independent callee does on the wire, and what the dialer
// learns about it.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { coversOnAny } from '../specification/covers.ts';
import { makeSeededDataDir } from '../support/databases.ts';
import type { Placed } from '../support/dialer-client.ts';
import { eventually } from '../support/eventually.ts';
import { freeUdpPort } from '../support/free-port.ts';
import { startGateway } from '../support/gateway-process.ts';
import { forSuite } from '../support/opened.ts';
import { glance, type Notification, startReceiver } from '../support/receiver.ts';
import { type Sipp, type SippOptions, startSipp } from '../support/sipp.ts';

const callees: Sipp[] = [];

async function callee(scenario: string, options: Partial<SippOptions> = {}): Promise<Sipp> {
  const sipp = await startSipp({ scenario, ...options });
  callees.push(sipp);
  return sipp;
}

function dial(far: Sipp, more: Record<string, unknown> = {}): Promise<Placed> {
  const target = `sip:callee@127.0.0.1:${far.port}`;
  return gateway.dialer.dial({ target, notifyurl: receiver.url, ...more });
}

async function untilAnswered({ callId }: Placed): Promise<void> {
  await eventually(() => receiver.of(callId).length > 0, 'the notification Answered arrives');
}

async function endOf({ callId }: Placed): Promise<Notification> {
  const all = await receiver.untilEnded(callId);
  expect(all.map((notification) => notification.sequence)).toEqual(
    all.map((_, index) => index + 1),
  );
  return all.at(-1) as Notification;
}

type TimelineEvent = {
  readonly type: string;
  readonly time: string;
  readonly data: Readonly<Record<string, unknown>>;
};

async function timelineOf({ callId }: Placed): Promise<readonly TimelineEvent[]> {
  const types = () => soFar(callId);
  await eventually(
    async () => (await types()).some(({ type }) => type === 'completed' || type === 'failed'),
    'the timeline is complete',
  );
  return types();
}

async function soFar(callId: string): Promise<readonly TimelineEvent[]> {
  return ((await gateway.dialer.call(callId)).body as { timeline: readonly TimelineEvent[] })
    .timeline;
}

const dataDir = forSuite(makeSeededDataDir);
const receiver = forSuite(startReceiver);
const gateway = forSuite(
  () => startGateway(dataDir.path, { RTP_INACTIVITY_TIMEOUT_MS: '60000' }),
  (opened) => opened.terminate(),
);

afterEach(() => Promise.all(callees.splice(0).map((sipp) => sipp.stop())));

describe('a callee that answers', () => {
  test('and hangs up: Answered, completed, Caller-disconnected', async () => {
    coversOnAny('notifications.completed.rule.Caller-disconnected');
    const far = await callee('answer-remote-bye');
    const placed = await dial(far);

    expect(await endOf(placed)).toMatchObject({
      status: 'completed',
      reason: '200 OK',
      reasonCode: 'Caller-disconnected',
    });
    expect(glance(receiver.of(placed.callId))).toEqual(['Answered', 'completed']);
    expect(await far.exited).toEqual({ code: 0, errors: '' });
  });

  test('and is hung up by the dialer: Bot-disconnected', async () => {
    coversOnAny('notifications.completed.rule.Bot-disconnected');
    const far = await callee('answer-local-bye');
    const placed = await dial(far);
    await untilAnswered(placed);
    const answer = await gateway.dialer.end(placed.callId);

    expect(answer.status).toBe(200);
    expect(await endOf(placed)).toMatchObject({
      status: 'completed',
      reason: '200 OK',
      reasonCode: 'Bot-disconnected',
    });
    expect(await far.exited).toEqual({ code: 0, errors: '' });
  });

  test('after 180: ringDurationInMS counts from it', async () => {
    const far = await callee('ringing-answer');
    const placed = await dial(far);
    await untilAnswered(placed);
    await gateway.dialer.end(placed.callId);

    const end = await endOf(placed);
    const times = new Map(
      (await timelineOf(placed)).map(({ type, time }) => [type, Date.parse(time)]),
    );
    const rangMs = (times.get('answered') ?? 0) - (times.get('ringing') ?? 0);
    expect(end['ringDurationInMS']).toBe(rangMs);
    expect(end['connectDurationInMS']).toBeGreaterThanOrEqual(end['ringDurationInMS'] as number);
    expect((await timelineOf(placed)).map(({ type }) => type)).toEqual([
      'queued',
      'dialing',
      'ringing',
      'answered',
      'completed',
    ]);
    expect(await far.exited).toEqual({ code: 0, errors: '' });
  });

  test('after early media: ringing has earlyMedia', async () => {
    const far = await callee('early-media-answer');
    const placed = await dial(far);
    await untilAnswered(placed);
    await gateway.dialer.end(placed.callId);
    await endOf(placed);

    const ringing = (await timelineOf(placed)).find(({ type }) => type === 'ringing');
    expect(ringing?.data).toMatchObject({ sipStatus: 183, earlyMedia: true });
    expect(await far.exited).toEqual({ code: 0, errors: '' });
  });

  test('and holds and resumes: each offer gets a matching answer, and the call continues', async () => {
    const far = await callee('hold-resume');
    const placed = await dial(far);
    await untilAnswered(placed);
    await eventually(
      async () => (await acknowledged(far)) >= 2,
      'both re-INVITEs are acknowledged',
    );
    await gateway.dialer.end(placed.callId);

    expect(await endOf(placed)).toMatchObject({ reasonCode: 'Bot-disconnected' });
    const answers = (await far.messages()).filter(
      ({ direction, text }) => direction === 'received' && text.startsWith('SIP/2.0 200'),
    );
    expect(answers.some(({ text }) => text.includes('a=recvonly'))).toBe(true);
    expect(await far.exited).toEqual({ code: 0, errors: '' });
  });

  test('and presses digits by INFO: published as dtmf', async () => {
    const far = await callee('info-dtmf');
    const placed = await dial(far);
    await untilAnswered(placed);
    const published = async () =>
      (await soFar(placed.callId)).filter(({ type }) => type === 'dtmf').length;
    await eventually(async () => (await published()) >= 2, 'both digits are published');
    await gateway.dialer.end(placed.callId);
    await endOf(placed);

    const digits = (await timelineOf(placed))
      .filter(({ type }) => type === 'dtmf')
      .map(({ data }) => [data['digit'], data['source']]);
    expect(digits).toEqual([
      ['5', 'info'],
      ['#', 'info'],
    ]);
    expect(await far.exited).toEqual({ code: 0, errors: '' });
  });

  test('and whose first 200 is lost: completed', async () => {
    const far = await callee('lost-200');
    const placed = await dial(far);
    await untilAnswered(placed);
    await gateway.dialer.end(placed.callId);

    expect(await endOf(placed)).toMatchObject({ status: 'completed' });
    expect(await far.exited).toEqual({ code: 0, errors: '' });
  });

  test('and loses our ACKs: one Answered', async () => {
    const far = await callee('lost-ack', { repeats: false });
    const placed = await dial(far);
    await untilAnswered(placed);
    await eventually(async () => (await received(far, /^ACK /)) >= 3, 'the ACK is repeated');
    await gateway.dialer.end(placed.callId);
    await endOf(placed);

    expect(glance(receiver.of(placed.callId))).toEqual(['Answered', 'completed']);
    expect(await far.exited).toEqual({ code: 0, errors: '' });
  });
});

describe('a callee that does not answer', () => {
  test.each([
    ['404 Not Found', 'Service Unavailable', 'invalid-number'],
    ['480 Temporarily Unavailable', 'Temporarily Unavailable', 'unavailable'],
    ['486 Busy Here', 'Busy here', 'busy'],
    ['503 Service Unavailable', 'Service Unavailable', 'carrier-failure'],
    ['603 Decline', 'Temporarily Unavailable', 'declined'],
  ])('%s: Failed with %s', async (status, reasonCode, outcome) => {
    coversOnAny(
      'notifications.failed.rule.Busy-here',
      'notifications.failed.rule.Service-Unavailable',
      'notifications.failed.rule.Temporarily-Unavailable',
    );
    const far = await callee('reject', { keys: { status } });
    const placed = await dial(far);

    expect(await endOf(placed)).toMatchObject({
      status: 'Failed',
      reason: status,
      reasonCode,
      outcome,
      connectDurationInMS: 0,
    });
    expect(glance(receiver.of(placed.callId))).toEqual(['Failed']);
    expect(await far.exited).toEqual({ code: 0, errors: '' });
  });

  test('302: the redirection is not followed', async () => {
    const far = await callee('redirect', { keys: { elsewhere: 'sip:other@127.0.0.1:9' } });

    expect(await endOf(await dial(far))).toMatchObject({
      status: 'Failed',
      reason: '302 Moved Temporarily',
      reasonCode: 'Service Unavailable',
    });
    expect(await far.exited).toEqual({ code: 0, errors: '' });
  });

  test('rings past the time-out: CANCEL, no-answer', async () => {
    const far = await callee('cancelled');

    expect(await endOf(await dial(far, { timeoutInMs: 1_000 }))).toMatchObject({
      status: 'Failed',
      reason: 'Ring time-out',
      reasonCode: 'Temporarily Unavailable',
      outcome: 'no-answer',
    });
    expect(await far.exited).toEqual({ code: 0, errors: '' });
  });

  test('is cancelled by the dialer while it rings', async () => {
    const far = await callee('cancelled');
    const placed = await dial(far);
    await eventually(
      async () =>
        ((await gateway.dialer.call(placed.callId)).body as { state: string }).state === 'ringing',
      'the phone rings',
    );
    await gateway.dialer.end(placed.callId);

    expect(await endOf(placed)).toMatchObject({
      status: 'Failed',
      reason: 'Cancelled by the application',
      outcome: 'cancelled',
    });
    expect(await far.exited).toEqual({ code: 0, errors: '' });
  });

  test('answers while we cancel: acknowledged, hung up, and never Answered', async () => {
    const far = await callee('cancel-race');
    const placed = await dial(far, { timeoutInMs: 1_000 });

    expect(await endOf(placed)).toMatchObject({ status: 'Failed', outcome: 'no-answer' });
    expect(glance(receiver.of(placed.callId))).toEqual(['Failed']);
    expect(await far.exited).toEqual({ code: 0, errors: '' });
  });

  test('a port where no server listens: carrier-failure, without waiting', async () => {
    const target = `sip:callee@127.0.0.1:${await freeUdpPort()}`;
    const placed = await gateway.dialer.dial({ target, notifyurl: receiver.url });

    expect(await endOf(placed)).toMatchObject({
      status: 'Failed',
      outcome: 'carrier-failure',
      reasonCode: 'Service Unavailable',
    });
  });
});

describe('through trunks', () => {
  test('TCP and digest, with the password from the environment', async () => {
    const overTcp = await callee('answer-remote-bye', { transport: 'tcp' });
    const withDigest = await callee('digest-proxy');
    const ownDataDir = await makeSeededDataDir();
    const trunksFile = join(ownDataDir.path, 'trunks.yaml');
    await writeFile(
      trunksFile,
      `trunks:
  - name: over-tcp
    default: true
    gateways: [{ host: 127.0.0.1, port: ${overTcp.port}, transport: tcp }]
    codecs: [PCMA, PCMU]
  - name: with-digest
    gateways: [{ host: 127.0.0.1, port: ${withDigest.port} }]
    auth: { username: alice, passwordEnv: DIGEST_PASSWORD }
`,
    );
    const own = await startGateway(ownDataDir.path, {
      TRUNKS_FILE: trunksFile,
      DIGEST_PASSWORD: 'wonderland',
      NOTIFY_ALLOWED_NETWORKS: '127.0.0.0/8',
    });
    try {
      const tcp = await own.dialer.dial({ target: 'tel:+12025550100', notifyurl: receiver.url });
      const digest = await own.dialer.dial({
        target: 'tel:+12025550101',
        notifyurl: receiver.url,
        trunk: 'with-digest',
      });
      expect(await endOf(tcp)).toMatchObject({
        status: 'completed',
        reasonCode: 'Caller-disconnected',
      });
      await untilAnswered(digest);
      await own.dialer.end(digest.callId);
      await endOf(digest);

      expect(await overTcp.exited).toEqual({ code: 0, errors: '' });
      expect((await overTcp.messages())[0]?.text).toMatch(/m=audio \d+ RTP\/AVP 8 0 101/);
      expect(await withDigest.exited).toEqual({ code: 0, errors: '' });
      expect(
        (await own.dialer.post({ target: 'tel:+12025550102', trunk: 'nowhere' })).body,
      ).toMatchObject({ status: 400, errors: [{ path: 'trunk' }] });
      expect((await own.dialer.post({ target: 'sip:callee@127.0.0.1' })).body).toMatchObject({
        status: 400,
        errors: [{ path: 'target' }],
      });
    } finally {
      await own.terminate();
      await ownDataDir.remove();
    }
  });
});

async function count(far: Sipp, direction: 'sent' | 'received', start: RegExp): Promise<number> {
  return (await far.messages()).filter(
    (message) => message.direction === direction && start.test(message.text),
  ).length;
}
/**
 * Counts the INVITEs that sipp has acknowledged. It may repeat an ACK, because a 200 may be
 * repeated.
 */
async function acknowledged(far: Sipp): Promise<number> {
  const acks = (await far.messages()).filter(
    ({ direction, text }) => direction === 'sent' && text.startsWith('ACK '),
  );
  return new Set(acks.map(({ text }) => /^CSeq: *(\d+)/im.exec(text)?.[1])).size;
}
const received = (far: Sipp, start: RegExp) => count(far, 'received', start);
