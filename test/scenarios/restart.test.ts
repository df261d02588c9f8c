// The gateway is killed while some calls have ended, some are up and some ring, and while a
// receiver refuses. It must notify each accepted call once, up to its end. No phone may be called
// twice or be left in a call.

import { afterEach, describe, expect, test } from 'vitest';
import { type SipEngine, startSipEngine } from '../../src/embedded/drachtio/engine.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { makeSeededDataDir } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { freeUdpPort } from '../support/free-port.ts';
import { type GatewayProcess, startGateway } from '../support/gateway-process.ts';
import { isTerminal, type Received, type Receiver, startReceiver } from '../support/receiver.ts';
import { type Sipp, startSipp } from '../support/sipp.ts';

const ended = 15;
const up = 20;
const ringing = 15;
/** Calls that ring through the restart and are then picked up. */
const late = 5;
const lateAfterMs = 8_000;
const cleanups: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

type World = {
  readonly receiver: Receiver;
  readonly callees: {
    readonly ended: Sipp;
    readonly up: Sipp;
    readonly ringing: Sipp;
    readonly late: Sipp;
  };
  readonly start: () => Promise<GatewayProcess>;
};

async function build(hasOwnEngine: boolean): Promise<World> {
  const dataDir = await makeSeededDataDir();
  cleanups.push(() => dataDir.remove());
  const receiver = await startReceiver();
  cleanups.push(() => receiver.close());
  const common = { keepMessages: true, timeoutMs: 150_000 } as const;
  const callees = {
    ended: await startSipp({ ...common, scenario: 'load', calls: ended, hangUpAfterMs: 200 }),
    // These callees never hang up.
    up: await startSipp({ ...common, scenario: 'load', calls: up }),
    ringing: await startSipp({
      ...common,
      scenario: hasOwnEngine ? 'cancelled' : 'ringing-bye',
      calls: ringing,
    }),
    late: await startSipp({
      ...common,
      scenario: 'ringing-answer-untagged',
      calls: late,
      pauseMs: lateAfterMs,
    }),
  };
  cleanups.push(() => Promise.all(Object.values(callees).map((callee) => callee.stop())));
  const engine = hasOwnEngine ? await ownEngine() : undefined;
  const sipPort = await freeUdpPort();
  const variables = {
    // The callees send no audio.
    RTP_INACTIVITY_TIMEOUT_MS: '120000',
    SIP_ALLOWED_NETWORKS: '127.0.0.0/8',
    NOTIFY_ALLOWED_NETWORKS: '127.0.0.0/8',
    SIP_PORT: String(sipPort),
    ...(engine === undefined
      ? {}
      : { DRACHTIO_URL: `tcp://:engine@127.0.0.1:${engine.controlPort}` }),
  };
  const start = async () => {
    const gateway = await startGateway(dataDir.path, variables);
    cleanups.push(() => gateway.terminate());
    return gateway;
  };
  return { receiver, callees, start };
}

async function ownEngine(): Promise<SipEngine> {
  const engine = await startSipEngine({
    sipHost: '127.0.0.1',
    sipPort: 0,
    controlHost: '127.0.0.1',
    controlPort: 0,
    secret: 'engine',
    logger: silentLogger,
  });
  cleanups.push(() => engine.close());
  return engine;
}

function dialAll(gateway: GatewayProcess, callee: Sipp, count: number, receiver: Receiver) {
  return Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const target = `sip:u${index}@127.0.0.1:${callee.port}`;
      const { callId } = await gateway.dialer.dial({
        target,
        notifyurl: receiver.url,
        timeoutInMs: 180_000,
        machineDetection: 'detect',
      });
      return callId;
    }),
  );
}

async function untilState(gateway: GatewayProcess, callIds: readonly string[], state: string) {
  await eventually(
    async () => {
      const found = await gateway.dialer.list(`?state=${state}&limit=200`);
      const there = new Set(
        (found.body as { calls: { callId: string }[] }).calls.map((call) => call.callId),
      );
      return callIds.every((callId) => there.has(callId));
    },
    `all calls are ${state}`,
    30_000,
  );
}

async function invitesOf(callee: Sipp): Promise<Map<string, Set<string>>> {
  const byUser = new Map<string, Set<string>>();
  for (const { direction, text } of await callee.messages()) {
    const user = /^INVITE sip:([^@]+)@/.exec(text)?.[1];
    const sipCallId = /^Call-ID:\s*(\S+)/im.exec(text)?.[1];
    if (direction !== 'received' || user === undefined || sipCallId === undefined) continue;
    byUser.set(user, (byUser.get(user) ?? new Set()).add(sipCallId));
  }
  return byUser;
}

function byCall(received: readonly Received[]): Map<string, Received[]> {
  const calls = new Map<string, Received[]>();
  for (const entry of received) {
    calls.set(entry.body.callId, [...(calls.get(entry.body.callId) ?? []), entry]);
  }
  return calls;
}

function expectWholeStories(receiver: Receiver, callIds: readonly string[]): void {
  const bodies = new Map<string, string>();
  for (const { body, rawBody } of receiver.received) {
    // A repeated event id is a retry with the same bytes.
    expect(bodies.get(body.eventId) ?? rawBody).toBe(rawBody);
    bodies.set(body.eventId, rawBody);
  }
  const accepted = byCall(receiver.accepted());
  for (const callId of callIds) {
    const story = (accepted.get(callId) ?? []).map((entry) => entry.body);
    const once = [...new Map(story.map((body) => [body.eventId, body])).values()];
    expect(once.filter(isTerminal), callId).toHaveLength(1);
    expect(once.map((body) => body.sequence)).toEqual(once.map((_, index) => index + 1));
    expect(isTerminal(once.at(-1) ?? ({ status: 'Answered' } as never))).toBe(true);
  }
}

function expectEnds(receiver: Receiver, callIds: readonly string[], end: object): void {
  for (const callId of callIds) expect(receiver.of(callId).at(-1)).toMatchObject(end);
}

/** Returns how many ends of each outcome the process has counted. */
async function countedEnds(gateway: GatewayProcess): Promise<Record<string, number>> {
  const metrics = await (await fetch(`${gateway.runtime.httpUrl}/metrics`)).text();
  const lines = metrics.matchAll(/^offhook_calls_ended_total\{outcome="([^"]+)".*\} ([1-9]\d*)$/gm);
  const counts: Record<string, number> = {};
  for (const [, outcome = '', count] of lines) counts[outcome] = Number(count);
  return counts;
}

/** Expects one Call-ID for each number, however often a request was delivered or a process died. */
async function expectOneInviteEach(callees: World['callees']): Promise<void> {
  for (const callee of Object.values(callees)) {
    const invites = await invitesOf(callee);
    for (const [user, sipCallIds] of invites) expect(sipCallIds.size, user).toBe(1);
  }
}

describe.each([
  ['with the embedded engine', false],
  ['with the engine in its own process', true],
])('killed and started again, %s', (_name, hasOwnEngine) => {
  test('every call is notified to its end once, and no phone is called twice or left in a call', {
    timeout: 240_000,
  }, async () => {
    const world = await build(hasOwnEngine);
    const { receiver, callees } = world;
    const first = await world.start();
    receiver.answerWith(() => 503);

    const upIds = await dialAll(first, callees.up, up, receiver);
    const ringingIds = await dialAll(first, callees.ringing, ringing, receiver);
    const endedIds = await dialAll(first, callees.ended, ended, receiver);
    await untilState(first, upIds, 'answered');
    await untilState(first, ringingIds, 'ringing');
    await untilState(first, endedIds, 'ended');
    // These calls are dialled last. Their phones pick up by their own clock, and the gateway must
    // be gone before that.
    const lateIds = hasOwnEngine ? [] : await dialAll(first, callees.late, late, receiver);
    await untilState(first, lateIds, 'ringing');
    await first.kill();
    receiver.answerWith(() => 200);
    const second = await world.start();

    // Each callee that is up gets a BYE from the gateway. Otherwise sipp would not exit with 0.
    expect(await callees.up.exited).toMatchObject({ code: 0 });
    // Callees that ring get a CANCEL from the engine that called them, or else a BYE in their early
    // dialog.
    expect(await callees.ringing.exited).toMatchObject({ code: 0 });
    // Without an early dialog nothing can be sent. A callee that picks up gets an ACK and a BYE.
    if (!hasOwnEngine) expect(await callees.late.exited).toMatchObject({ code: 0 });
    const callIds = [...endedIds, ...upIds, ...ringingIds, ...lateIds];
    await eventually(
      () => callIds.every((callId) => receiver.of(callId).some(isTerminal)),
      'every call has its terminal notification',
      60_000,
    );
    expectWholeStories(receiver, callIds);
    expectEnds(receiver, upIds, {
      status: 'completed',
      reason: 'Gateway restarted',
      reasonCode: 'Gateway-disconnected',
    });
    expectEnds(receiver, [...ringingIds, ...lateIds], { status: 'Failed', outcome: 'unknown' });
    expectEnds(receiver, endedIds, { status: 'completed', reasonCode: 'Caller-disconnected' });
    expect(await countedEnds(second)).toEqual({
      'gateway-failure': upIds.length,
      unknown: ringingIds.length + lateIds.length,
    });
    await expectOneInviteEach(callees);
  });
});
