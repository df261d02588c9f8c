// Places many concurrent calls over gateways that behave randomly, and checks the rules for each
// call. The seed is fixed, so that a failure can be repeated.

import { afterEach, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { one, type RawCallee, type RawMessage } from '../support/raw-callee.ts';
import { seeded } from './seeded-dice.ts';
import { answer, openTrunkWorld, type TrunkWorld } from './trunk-world.ts';

const callCount = 150;
const finals = [200, 200, 302, 404, 408, 480, 486, 500, 502, 503, 503, 504, 600, 603, 607] as const;

type Behaviour = {
  readonly trying: boolean;
  readonly ringing: 180 | 183 | undefined;
  readonly final: (typeof finals)[number];
  /** Answers after the call was given up, or not at all. */
  readonly late: boolean;
};
type Seen = { readonly gateway: number; readonly invite: RawMessage; final: number | undefined };

let world: TrunkWorld | undefined;
let timer: NodeJS.Timeout | undefined;

afterEach(async () => {
  clearInterval(timer);
  await world?.[Symbol.asyncDispose]();
});

function behaviour(random: () => number): Behaviour {
  return {
    trying: random() < 0.5,
    ringing: random() < 0.3 ? (random() < 0.5 ? 180 : 183) : undefined,
    final: finals[Math.floor(random() * finals.length)] ?? 503,
    late: random() < 0.3,
  };
}

/** The gateways of one trunk, with their configured behaviours. */
class Carrier {
  readonly seen = new Map<string, Seen[]>();
  readonly ended = new Set<string>();
  readonly #behaviours = new Map<string, readonly Behaviour[]>();
  readonly #gateways: readonly RawCallee[];

  constructor(gateways: readonly RawCallee[]) {
    this.#gateways = gateways;
  }

  expectCall(number: string, behaviours: readonly Behaviour[]): void {
    this.#behaviours.set(number, behaviours);
    this.seen.set(number, []);
  }

  work(): void {
    this.#gateways.forEach((callee, index) => {
      for (const message of callee.inbox.splice(0)) this.#onMessage(callee, index, message);
    });
  }

  /** Sends the final responses that were held back. */
  finish(number: string): void {
    for (const seen of this.seen.get(number) ?? []) this.#answer(number, seen);
  }

  #onMessage(callee: RawCallee, gateway: number, message: RawMessage): void {
    const number = /:(\d+)@/.exec(one(message, 'to'))?.[1] ?? '';
    const mine = this.seen
      .get(number)
      ?.find(({ invite }) => one(invite, 'call-id') === one(message, 'call-id'));
    if (message.status !== undefined) return;
    if (message.method === 'INVITE' && mine === undefined) this.#take(number, gateway, message);
    if (message.method === 'CANCEL' && mine !== undefined) {
      callee.reply(message, 200, 'OK');
      if (mine.final === undefined) this.#reply(mine, 487);
    }
    if (message.method === 'BYE') {
      callee.reply(message, 200, 'OK');
      this.ended.add(one(message, 'call-id'));
    }
  }

  #take(number: string, gateway: number, invite: RawMessage): void {
    const seen: Seen = { gateway, invite, final: undefined };
    this.seen.get(number)?.push(seen);
    const what = this.behaviourOf(number, gateway);
    const callee = this.#gateways[gateway];
    if (what.trying) callee?.reply(invite, 100, 'Trying');
    if (what.ringing !== undefined) callee?.reply(invite, what.ringing, 'Somebody is there');
    if (!what.late) this.#answer(number, seen);
  }

  behaviourOf(number: string, gateway: number): Behaviour {
    const what = this.#behaviours.get(number)?.[gateway];
    if (what === undefined) throw new Error(`no call expects ${number} at ${gateway}`);
    return what;
  }

  #answer(number: string, seen: Seen): void {
    if (seen.final === undefined) this.#reply(seen, this.behaviourOf(number, seen.gateway).final);
  }

  #reply(seen: Seen, status: number): void {
    seen.final = status;
    const body = status === 200 ? { body: answer } : {};
    this.#gateways[seen.gateway]?.reply(seen.invite, status, 'Final', body);
  }
}

type Call = { readonly number: string; readonly givesUp: boolean; readonly events: string[] };

/** Describes what happened to a call, for the message of a failed test. */
function storyOf({ number, events }: Call, carrier: Carrier): string {
  const tried = carrier.seen.get(number)?.map(({ gateway, final }) => `${gateway}: ${final}`);
  return `${number}: ${events.join(' ')}; ${tried?.join(', ')}`;
}

function checkTries(call: Call, carrier: Carrier): void {
  const story = storyOf(call, carrier);
  const tried = carrier.seen.get(call.number) ?? [];
  const isGatewaysFault = ({ gateway, final = 0 }: Seen) =>
    final >= 500 && final <= 599 && carrier.behaviourOf(call.number, gateway).ringing === undefined;
  const last = tried.at(-1);
  const mightGoOn = last !== undefined && !call.givesUp && tried.length < 3;

  expect(
    tried.map(({ gateway }) => gateway),
    story,
  ).toEqual([0, 1, 2].slice(0, tried.length));
  expect(new Set(tried.map(({ invite }) => one(invite, 'call-id'))).size).toBe(tried.length);
  expect(tried.slice(0, -1).every(isGatewaysFault), story).toBe(true);
  if (mightGoOn) expect(isGatewaysFault(last), story).toBe(false);
}

function checkEnd(call: Call, carrier: Carrier): void {
  const story = storyOf(call, carrier);
  const tried = carrier.seen.get(call.number) ?? [];
  const count = (...kinds: readonly string[]) =>
    call.events.filter((kind) => kinds.includes(kind)).length;
  const answered = tried.filter(({ final }) => final === 200);

  expect(count('failed', 'ended'), story).toBe(1);
  expect(count('attemptFailed'), story).toBe(Math.max(0, tried.length - 1));
  expect(
    answered.every(({ invite }) => carrier.ended.has(one(invite, 'call-id'))),
    story,
  ).toBe(true);
}

test('rings at most one phone for a call, tries each gateway once, and leaves no phone in a call', async () => {
  world = await openTrunkWorld({ gateways: 3 });
  const { sip, gateways, place } = world;
  const random = seeded(20_261_120);
  const carrier = new Carrier(gateways);
  timer = setInterval(() => carrier.work(), 2);

  const calls = Array.from({ length: callCount }, (_, index) => {
    const number = String(15_550_000_000 + index);
    carrier.expectCall(number, [behaviour(random), behaviour(random), behaviour(random)]);
    return { number, givesUp: random() < 0.3, ...place({ kind: 'tel', number }) };
  });
  await Promise.all(
    calls.map(async ({ number, givesUp, leg, observer }) => {
      let isReleased = false;
      void leg.released.then(() => {
        isReleased = true;
      });
      await eventually(() => observer.events.length > 0, 'something happens');
      if (givesUp) leg.cancel('given up');
      await eventually(() => {
        carrier.finish(number);
        if (observer.kinds().includes('answered')) leg.hangUp('done');
        return isReleased;
      }, `call ${number} has ended`);
    }),
  );

  for (const { number, givesUp, observer } of calls) {
    const call = { number, givesUp, events: observer.kinds() };
    checkTries(call, carrier);
    checkEnd(call, carrier);
  }
  expect(calls.some(({ number }) => carrier.seen.get(number)?.length === 3)).toBe(true);
  expect(sip.liveLegs()).toBe(0);
});
