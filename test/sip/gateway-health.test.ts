import { afterEach, describe, expect, test } from 'vitest';
import { silentLogger } from '../../src/lib/logger.ts';
import { GatewayHealth, type ProbeResult } from '../../src/sip/trunks/gateway-health.ts';
import { builtInTrunk, type HealthSettings, type Trunk } from '../../src/sip/trunks/trunks.ts';
import { eventually } from '../support/eventually.ts';
import type { RawCallee } from '../support/raw-callee.ts';
import { openTrunkWorld, type TrunkWorld } from './trunk-world.ts';

const settings: HealthSettings = { intervalMs: 1, failThreshold: 3, recoverThreshold: 2 };
const gateway = '192.0.2.1:5060';

function trunk(more: Partial<Trunk> = {}): Trunk {
  return {
    ...builtInTrunk('carrier', { host: '192.0.2.1', transport: 'udp' }),
    health: settings,
    ...more,
  };
}

const open: GatewayHealth[] = [];

afterEach(() => {
  for (const health of open.splice(0)) health.close();
});

/** Returns a probe that yields the given results in order, and then waits for `add`. */
function scripted(...results: ProbeResult[]) {
  let nowMs = 0;
  let waiting: ((result: ProbeResult) => void) | undefined;
  const health = new GatewayHealth({
    probe: () => {
      const result = results.shift();
      if (result !== undefined) return Promise.resolve(result);
      return new Promise((resolve) => {
        waiting = resolve;
      });
    },
    logger: silentLogger,
    now: () => nowMs,
  });
  open.push(health);
  return {
    health,
    isUp: () => health.isUp('carrier', gateway),
    /** Resolves when a probe waits: all earlier results are then counted. */
    counted: () => eventually(() => waiting !== undefined, 'all results are counted'),
    add: (first: ProbeResult, ...more: ProbeResult[]) => {
      results.push(...more);
      waiting?.(first);
      waiting = undefined;
    },
    pass: (ms: number) => {
      nowMs += ms;
    },
  };
}

describe('the state of a gateway', () => {
  test('is up before the first probe', () => {
    const { health, isUp } = scripted();
    health.watch([trunk()]);

    expect(isUp()).toBe(true);
    expect(health.isUp('carrier', 'unknown.example:5060')).toBe(true);
    expect(health.states()).toEqual([{ trunk: 'carrier', gateway, isUp: true }]);
  });

  test('goes down after `failThreshold` failures in a row', async () => {
    const { health, isUp, counted } = scripted('silent', 'silent', 'silent');
    health.watch([trunk()]);

    await counted();

    expect(isUp()).toBe(false);
    expect(health.states()).toEqual([{ trunk: 'carrier', gateway, isUp: false }]);
  });

  test.each([
    ['an answer between the failures', ['silent', 'silent', 'alive', 'silent', 'silent']],
    ['too few failures', ['silent', 'silent']],
    ['unknown results after two failures', ['silent', 'silent', 'unknown', 'unknown', 'unknown']],
  ] as const)('stays up: %s', async (_name, results) => {
    const { health, isUp, counted } = scripted(...results);
    health.watch([trunk()]);

    await counted();

    expect(isUp()).toBe(true);
  });

  test('comes up after `recoverThreshold` answers in a row', async () => {
    const { health, isUp, counted, add } = scripted('silent', 'silent', 'silent');
    health.watch([trunk()]);
    await counted();

    add('alive', 'silent', 'alive');
    await counted();
    expect(isUp()).toBe(false);

    add('alive');
    await counted();
    expect(isUp()).toBe(true);
  });

  test('counts an INVITE without an answer as a failure if gateways are probed', () => {
    const { health, isUp } = scripted();
    health.watch([trunk({ health: { ...settings, intervalMs: 60_000 } })]);

    for (let times = 0; times < 3; times += 1) health.noteSilence('carrier', gateway);

    expect(isUp()).toBe(false);
  });

  test('is not taken down by silence if `health` is omitted, because no probe would bring it back', () => {
    const { health, isUp } = scripted();
    const { health: _none, ...unasked } = trunk();
    health.watch([unasked]);

    for (let times = 0; times < 10; times += 1) health.noteSilence('carrier', gateway);

    expect(isUp()).toBe(true);
  });

  test('Retry-After takes the gateway out for that time, with or without `health`', () => {
    const { health, isUp, pass } = scripted();
    const { health: _none, ...unasked } = trunk();
    health.watch([unasked]);

    health.pause('carrier', gateway, 30);
    expect(isUp()).toBe(false);
    pass(29_999);
    expect(isUp()).toBe(false);
    pass(1);
    expect(isUp()).toBe(true);
  });

  test('limits Retry-After to five minutes', () => {
    const { health, isUp, pass } = scripted();
    health.watch([trunk()]);

    health.pause('carrier', gateway, 999_999_999);
    pass(300_000);

    expect(isUp()).toBe(true);
  });

  test('a reload keeps the state of gateways that stay, and forgets gateways that go', () => {
    const { health, isUp } = scripted();
    const slow = trunk({ health: { ...settings, intervalMs: 60_000 } });
    health.watch([slow]);
    for (let times = 0; times < 3; times += 1) health.noteSilence('carrier', gateway);

    health.watch([slow, { ...slow, name: 'other' }]);
    expect(isUp()).toBe(false);
    expect(health.isUp('other', gateway)).toBe(true);
    health.watch([]);
    expect(health.states()).toEqual([]);
    health.watch([slow]);
    expect(isUp()).toBe(true);
  });

  test('a reload that ends the probes brings every gateway up', () => {
    const { health, isUp } = scripted();
    health.watch([trunk({ health: { ...settings, intervalMs: 60_000 } })]);
    for (let times = 0; times < 3; times += 1) health.noteSilence('carrier', gateway);

    const { health: _none, ...unasked } = trunk();
    health.watch([unasked]);

    expect(isUp()).toBe(true);
  });
});

describe('gateways probed by OPTIONS', () => {
  let world: TrunkWorld | undefined;
  let stop: () => void = () => undefined;

  afterEach(async () => {
    stop();
    await world?.[Symbol.asyncDispose]();
  });

  /** Answers every OPTIONS with the status that the test wants at that moment. 0: no answer. */
  function answerOptions(gateways: readonly RawCallee[], statusOf: (index: number) => number) {
    const timer = setInterval(() => {
      gateways.forEach((callee, index) => {
        const at = callee.inbox.findIndex(({ method, status }) => method === 'OPTIONS' && !status);
        const [request] = at < 0 ? [] : callee.inbox.splice(at, 1);
        const status = statusOf(index);
        if (request !== undefined && status > 0) callee.reply(request, status, 'Whatever');
      });
    }, 5);
    return () => clearInterval(timer);
  }

  test('a gateway that answers 503 goes down and is tried last, and comes back with its 200', async () => {
    const health = { intervalMs: 200, failThreshold: 2, recoverThreshold: 2 };
    world = await openTrunkWorld({ trunk: { health } });
    const { sip, gateways, place } = world;
    const [first, second] = gateways as [RawCallee, RawCallee];
    let ofFirst = 503;
    stop = answerOptions(gateways, (index) => (index === 0 ? ofFirst : 200));
    const states = () => sip.gateways().map(({ isUp }) => isUp);

    await eventually(() => states().join() === 'false,true', 'the first one is down');
    const call = place();
    second.reply(await second.take('INVITE'), 404, 'Not Found');
    await call.leg.released;
    expect(first.has('INVITE')).toBe(false);

    // Many gateways do not know the user, but still take calls.
    ofFirst = 404;
    await eventually(() => states().join() === 'true,true', 'the first one is up again');
    const later = place();
    first.reply(await first.take('INVITE'), 404, 'Not Found');
    await later.leg.released;
  });

  test('a call tries all gateways even if all are down', async () => {
    const health = { intervalMs: 100, failThreshold: 1, recoverThreshold: 1 };
    world = await openTrunkWorld({ trunk: { health } });
    const { sip, gateways, place } = world;
    const [first] = gateways as [RawCallee];
    await eventually(() => sip.gateways().every(({ isUp }) => !isUp), 'both are down');

    const call = place();

    first.reply(await first.take('INVITE'), 486, 'Busy Here');
    expect((await call.observer.until('failed')).failure.sipStatus).toBe(486);
    await call.leg.released;
  });

  test('a 503 with Retry-After sends the following calls to the next gateway first', async () => {
    world = await openTrunkWorld();
    const { sip, gateways, place } = world;
    const [first, second] = gateways as [RawCallee, RawCallee];
    const headers = ['Retry-After: 60 (in maintenance)'];

    const call = place();
    first.reply(await first.take('INVITE'), 503, 'Service Unavailable', { headers });
    second.reply(await second.take('INVITE'), 404, 'Not Found');
    await call.leg.released;
    const later = place();
    second.reply(await second.take('INVITE'), 503, 'Service Unavailable');
    first.reply(await first.take('INVITE'), 404, 'Not Found');
    await later.leg.released;

    expect(sip.gateways().map(({ isUp }) => isUp)).toEqual([false, true]);
  });
});
