import { afterEach, describe, expect, test } from 'vitest';
import type { Reachability } from '../../src/calls/ports.ts';
import type { Trunk } from '../../src/sip/trunks/trunks.ts';
import { onlyEmbedded } from '../edge/engines.ts';
import { eventually } from '../support/eventually.ts';
import { one, RawCallee } from '../support/raw-callee.ts';
import { silenceWithinMs } from '../support/sip-engine.ts';
import { seeded } from './seeded-dice.ts';
import { answer, openTrunkWorld, type TrunkWorld } from './trunk-world.ts';

let world: TrunkWorld | undefined;

afterEach(async () => {
  await world?.[Symbol.asyncDispose]();
  world = undefined;
});

/** Opens a world with two gateways, which most tests use. */
async function open(options: Parameters<typeof openTrunkWorld>[0] = {}) {
  world = await openTrunkWorld(options);
  const [first, second, third] = world.gateways;
  if (first === undefined || second === undefined) throw new Error('two gateways');
  return { ...world, first, second, third };
}

describe('fail-over over SIP', () => {
  test('a 503 leads to the next gateway, with a new transaction and Call-ID', async () => {
    const { place, first, second, nameOf } = await open();
    const { leg, observer } = place();

    const refused = await first.take('INVITE');
    first.reply(refused, 503, 'Service Unavailable');
    await first.take('ACK');
    const taken = await second.take('INVITE');
    second.reply(taken, 180, 'Ringing');
    second.reply(taken, 200, 'OK', { body: answer });
    const { leg: stored } = await observer.until('answered');
    leg.acknowledge();
    await second.take('ACK');
    leg.hangUp('done');
    second.reply(await second.take('BYE'), 200, 'OK');
    await leg.released;

    expect(observer.kinds()).toEqual(['sent', 'attemptFailed', 'sent', '180', 'answered', 'ended']);
    expect((await observer.until('attemptFailed')).attempt).toEqual({
      gateway: nameOf(first),
      sipStatus: 503,
      reason: 'Service Unavailable',
      durationMs: expect.any(Number) as number,
    });
    expect(one(taken, 'call-id')).not.toBe(one(refused, 'call-id'));
    expect(taken.startLine).toBe(`INVITE sip:15551230001@${nameOf(second)} SIP/2.0`);
    const sent = observer.events.filter((event) => event.kind === 'sent');
    expect(sent.map(({ gateway }) => gateway)).toEqual([nameOf(first), nameOf(second)]);
    expect(sent[1]?.leg.sipCallId).toBe(one(taken, 'call-id'));
    expect(stored.sipCallId).toBe(one(taken, 'call-id'));
  });

  test.each([
    [302, 'Moved Temporarily'],
    [403, 'Forbidden'],
    [404, 'Not Found'],
    [408, 'Request Timeout'],
    [480, 'Temporarily Unavailable'],
    [486, 'Busy Here'],
    [487, 'Request Terminated'],
    [600, 'Busy Everywhere'],
    [603, 'Decline'],
    [607, 'Unwanted'],
    [608, 'Rejected'],
  ])('%i %s ends the call', async (status, reason) => {
    const { place, first, second } = await open();
    const { leg, observer } = place();

    first.reply(await first.take('INVITE'), status, reason);

    expect((await observer.until('failed')).failure).toMatchObject({ sipStatus: status, reason });
    await leg.released;
    expect(observer.kinds()).toEqual(['sent', 'failed']);
    expect(second.inbox).toEqual([]);
  });

  test.each([180, 183])('a 503 after a %i ends the call', async (status) => {
    const { place, first, second } = await open();
    const { leg, observer } = place();

    const invite = await first.take('INVITE');
    first.reply(invite, status, 'Somebody is there');
    await observer.until('provisional');
    first.reply(invite, 503, 'Service Unavailable');

    await observer.until('failed');
    await leg.released;
    expect(observer.kinds()).toEqual(['sent', String(status), 'failed']);
    expect(second.inbox).toEqual([]);
  });

  test('a 500 after a 100 leads to the next gateway', async () => {
    const { place, first, second } = await open();
    const { leg, observer } = place();

    const invite = await first.take('INVITE');
    first.reply(invite, 100, 'Trying');
    first.reply(invite, 500, 'Server Internal Error');
    second.reply(await second.take('INVITE'), 486, 'Busy Here');

    expect((await observer.until('failed')).failure.sipStatus).toBe(486);
    await leg.released;
    expect(observer.kinds()).toEqual(['sent', 'attemptFailed', 'sent', 'failed']);
  });

  test('silence leads to the next gateway', async () => {
    const { leg, second, taken } = await afterSilence();

    leg.cancel('enough');
    second.reply(await second.take('CANCEL'), 200, 'OK');
    second.reply(taken, 487, 'Request Terminated');
    await leg.released;
  });

  onlyEmbedded(
    'a late answer of a silent gateway is hung up, which drachtio-server ignores',
    async () => {
      const { observer, first, invite } = await afterSilence();

      first.reply(invite, 200, 'OK', { body: answer });
      await first.take('ACK');
      first.reply(await first.take('BYE'), 200, 'OK');

      expect(observer.kinds()).toEqual(['sent', 'attemptFailed', 'sent', '180']);
    },
  );

  /** Lets the first gateway stay silent until the second one has rung. */
  async function afterSilence() {
    const { place, first, second } = await open({ timers: { t1Ms: 5 } });
    const { leg, observer } = place();
    const invite = await first.take('INVITE');
    const taken = await second.take('INVITE', silenceWithinMs);
    second.reply(taken, 180, 'Ringing');
    await observer.until('provisional');
    expect((await observer.until('attemptFailed')).attempt.sipStatus).toBe(408);
    return { leg, observer, first, second, invite, taken };
  }

  test('a node that has lost its lease sends no INVITE to the next gateway', async () => {
    const { place, first, second } = await open();
    let mayInvite = true;
    const { leg, observer } = place(undefined, () => mayInvite);

    const invite = await first.take('INVITE');
    mayInvite = false;
    first.reply(invite, 503, 'Service Unavailable');

    expect((await observer.until('failed')).failure.sipStatus).toBe(503);
    await leg.released;
    expect(observer.kinds()).toEqual(['sent', 'failed']);
    expect(second.inbox).toEqual([]);
  });

  test.each([
    ['suppressed', 'suppressed'],
    ['unknown', 'transport'],
    ['outside-hours', 'outside-hours'],
  ] as const)('a number that is %s gets no first INVITE', async (answer, kind) => {
    const { place, first } = await open();
    const { leg, observer } = place(undefined, undefined, { mayReach: async () => answer });

    const { failure } = await observer.until('failed');
    await leg.released;

    expect(failure.kind).toBe(kind);
    expect(first.inbox).toEqual([]);
  });

  test('a number that was suppressed meanwhile gets no INVITE over the next gateway', async () => {
    const { place, first, second } = await open();
    const answers: Reachability[] = ['free', 'suppressed'];
    const mayReach = async () => answers.shift() ?? 'unknown';
    const { leg, observer } = place(undefined, undefined, { mayReach });

    first.reply(await first.take('INVITE'), 503, 'Service Unavailable');
    const { failure } = await observer.until('failed');
    await leg.released;

    expect(failure).toMatchObject({ kind: 'suppressed', reason: 'The number is suppressed' });
    expect(observer.kinds()).toEqual(['sent', 'attemptFailed', 'failed']);
    expect(second.inbox).toEqual([]);
  });

  test('a call that is cancelled while its number is checked sends nothing', async () => {
    const { place, first, second } = await open();
    const asked: ((answer: Reachability) => void)[] = [];
    const mayReach = () => new Promise<Reachability>((resolve) => asked.push(resolve));
    const answerNext = async (given: Reachability) => {
      await eventually(() => asked.length > 0, 'the number is checked');
      asked.shift()?.(given);
    };
    const early = place(undefined, undefined, { mayReach });
    await eventually(() => asked.length > 0, 'the number is checked');
    early.leg.cancel('ring time-out');
    await answerNext('free');
    await early.leg.released;
    const late = place(undefined, undefined, { mayReach });
    await answerNext('free');
    first.reply(await first.take('INVITE'), 503, 'Service Unavailable');
    await eventually(() => asked.length > 0, 'the number is checked again');
    late.leg.hangUp('ring time-out');
    await answerNext('free');
    await late.leg.released;

    expect(early.observer.kinds()).toEqual(['failed']);
    expect(late.observer.kinds()).toEqual(['sent', 'attemptFailed', 'failed']);
    expect((await late.observer.until('failed')).failure.kind).toBe('cancelled');
    expect([...second.inbox, first.has('INVITE')]).toEqual([false]);
  });

  test('a node without its lease sends neither a first INVITE nor one with credentials', async () => {
    const trunk: Partial<Trunk> = { auth: { username: 'alice', password: 'secret' } };
    const { place, first } = await open({ trunk });
    let mayInvite = true;
    const { leg, observer } = place(undefined, () => mayInvite);
    const headers = ['WWW-Authenticate: Digest realm="lab", nonce="abc", algorithm=MD5'];

    const invite = await first.take('INVITE');
    mayInvite = false;
    first.reply(invite, 401, 'Unauthorized', { headers });
    await leg.released;
    const later = place(undefined, () => mayInvite);
    await later.leg.released;

    expect(observer.kinds()).toEqual(['sent', 'failed']);
    expect(later.observer.kinds()).toEqual(['failed']);
    expect(first.has('INVITE')).toBe(false);
  });

  test.each(['udp', 'tcp'] as const)(
    'a closed %s port leads to the next gateway',
    async (transport) => {
      const gone = await RawCallee.start();
      const closed = { host: '127.0.0.1', port: gone.port, transport } as const;
      await gone[Symbol.asyncDispose]();
      const { place, replace, second, nameOf } = await open();
      const reachable = { host: '127.0.0.1', port: second.port, transport: 'udp' } as const;
      replace({
        gateways: [
          { ...closed, priority: 1, weight: 1 },
          { ...reachable, priority: 2, weight: 1 },
        ],
      });
      const { leg, observer } = place();

      second.reply(await second.take('INVITE'), 603, 'Decline');

      expect((await observer.until('failed')).failure.sipStatus).toBe(603);
      expect((await observer.until('attemptFailed')).attempt).toMatchObject({
        gateway: `127.0.0.1:${closed.port}${transport === 'udp' ? '' : ';transport=tcp'}`,
        sipStatus: 503,
      });
      expect(observer.events.filter((event) => event.kind === 'sent').at(-1)?.gateway).toBe(
        nameOf(second),
      );
      await leg.released;
    },
  );

  test('each gateway is tried once, and the failure of the last one ends the call', async () => {
    const { place, first, second, third } = await open({ gateways: 3 });
    const { leg, observer } = place();

    first.reply(await first.take('INVITE'), 500, 'Server Internal Error');
    second.reply(await second.take('INVITE'), 502, 'Bad Gateway');
    third?.reply(await third.take('INVITE'), 504, 'Server Time-out');

    expect((await observer.until('failed')).failure).toMatchObject({
      sipStatus: 504,
      reason: 'Server Time-out',
      kind: 'response',
    });
    await leg.released;
    expect(observer.kinds()).toEqual([
      ...['sent', 'attemptFailed', 'sent', 'attemptFailed', 'sent', 'failed'],
    ]);
    expect(first.has('INVITE') || second.has('INVITE')).toBe(false);
  });

  test('a call that was given up tries no other gateway', async () => {
    const { place, first, second } = await open();
    const { leg, observer } = place();

    const invite = await first.take('INVITE');
    await observer.until('sent');
    leg.cancel('ring time-out');
    first.reply(invite, 503, 'Service Unavailable');

    await leg.released;
    expect(observer.kinds()).toEqual(['sent', 'failed']);
    expect((await observer.until('failed')).failure.kind).toBe('cancelled');
    expect(second.inbox).toEqual([]);
  });

  test('cancelling the second attempt ends the call without a third attempt', async () => {
    const { place, first, second, third } = await open({ gateways: 3 });
    const { leg, observer } = place();
    first.reply(await first.take('INVITE'), 503, 'Service Unavailable');
    const invite = await second.take('INVITE');
    second.reply(invite, 180, 'Ringing');
    await observer.until('provisional');
    let isReleased = false;
    void leg.released.then(() => {
      isReleased = true;
    });

    leg.cancel('changed my mind');
    second.reply(await second.take('CANCEL'), 200, 'OK');
    expect(isReleased).toBe(false);
    second.reply(invite, 200, 'OK', { body: answer });

    // The 200 crossed the CANCEL.
    await second.take('ACK');
    second.reply(await second.take('BYE'), 200, 'OK');
    await leg.released;
    expect(observer.kinds()).toEqual(['sent', 'attemptFailed', 'sent', '180', 'failed']);
    expect(third?.inbox).toEqual([]);
  });

  test('a call that is given up before its first INVITE sends no INVITE', async () => {
    const { place, first, sip } = await open();
    const { leg, observer } = place();

    leg.cancel('changed my mind');

    await leg.released;
    expect(observer.kinds()).toEqual(['failed']);
    expect(sip.liveLegs()).toBe(0);
    expect(first.inbox).toEqual([]);
  });

  test('sends no other INVITE if the engine connection breaks while one is under way', async () => {
    const { place, first, second, engines } = await open({ engines: 2 });
    const { observer } = place();
    await first.take('INVITE');
    const { engine } = (await observer.until('sent')).leg;

    await engines.find(({ controlPort }) => engine.endsWith(`:${controlPort}`))?.close();

    expect((await observer.until('failed')).failure.kind).toBe('transport');
    expect(observer.kinds()).toEqual(['sent', 'failed']);
    expect(second.inbox).toEqual([]);
  });

  test('spreads calls over the gateways of a priority by their weights', async () => {
    const weigh = ({ port }: RawCallee, weight: number) => ({
      ...{ host: '127.0.0.1', port, transport: 'udp' as const },
      ...{ priority: 1, weight },
    });
    const { place, replace, first, second } = await open({ dice: seeded(1) });
    replace({ gateways: [weigh(first, 3), weigh(second, 1)] });
    const counts = new Map([first, second].map((gateway) => [gateway, 0]));

    for (let count = 0; count < 40; count += 1) {
      const { leg } = place();
      await eventually(() => first.has('INVITE') || second.has('INVITE'), 'one of them is called');
      const gateway = first.has('INVITE') ? first : second;
      gateway.reply(await gateway.take('INVITE'), 404, 'Not Found');
      await gateway.take('ACK');
      await leg.released;
      counts.set(gateway, (counts.get(gateway) ?? 0) + 1);
    }

    // This seed gives exactly three to one. Other seeds deviate by a few calls.
    expect([...counts.values()]).toEqual([30, 10]);
  });

  test('answers a challenge of each gateway', async () => {
    const trunk: Partial<Trunk> = { auth: { username: 'alice', password: 'secret' } };
    const { place, first, second } = await open({ trunk });
    const { leg, observer } = place();
    const headers = ['WWW-Authenticate: Digest realm="lab", nonce="abc", algorithm=MD5'];

    for (const gateway of [first, second]) {
      gateway.reply(await gateway.take('INVITE'), 401, 'Unauthorized', { headers });
      await gateway.take('ACK');
      const invite = await gateway.take('INVITE');
      expect(one(invite, 'authorization')).toContain('username="alice"');
      gateway.reply(invite, 503, 'Service Unavailable');
    }

    await leg.released;
    expect(observer.kinds()).toEqual([
      ...['sent', 'resent', 'attemptFailed', 'sent', 'resent', 'failed'],
    ]);
  });

  test('a sip: target keeps its URI at each gateway', async () => {
    const { place, first, second } = await open();
    const { leg } = place({ kind: 'sip', user: 'bob', host: 'pbx.example' });

    const refused = await first.take('INVITE');
    first.reply(refused, 503, 'Service Unavailable');
    const taken = await second.take('INVITE');
    second.reply(taken, 404, 'Not Found');

    await leg.released;
    expect(refused.startLine).toBe('INVITE sip:bob@pbx.example SIP/2.0');
    expect(taken.startLine).toBe(refused.startLine);
  });

  test('calls under way keep their gateways after a reload', async () => {
    const { place, replace, first, second, third } = await open({ gateways: 3 });
    const { leg } = place();
    const invite = await first.take('INVITE');
    const onlyThird = { host: '127.0.0.1', port: third?.port ?? 0, transport: 'udp' } as const;

    replace({ gateways: [{ ...onlyThird, priority: 1, weight: 1 }] });
    first.reply(invite, 503, 'Service Unavailable');
    second.reply(await second.take('INVITE'), 404, 'Not Found');
    await leg.released;
    const later = place();
    third?.reply(await third.take('INVITE'), 404, 'Not Found');

    await later.leg.released;
    expect(first.has('INVITE') || second.has('INVITE')).toBe(false);
  });
});
