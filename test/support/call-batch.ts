// Places calls that take seconds each. A test file describes its calls next to the tests, and
// `place` places them all together before the first test. Each test then judges its own call. If it
// fails and the gateway or the callee stood still during the call, we place the call again, because
// the stall may be to blame rather than the product.

import { ImpairedCallee } from './impaired-callee.ts';
import type { Laptop } from './laptop.ts';
import { type ReceivedEvents, receivedEvents, untilDetectionStopped } from './received-events.ts';
import {
  maxTries,
  StandstillWatch,
  sampleEveryMs,
  standstillMs,
  ticksLateOf,
} from './undisturbed.ts';

export type Script = (callee: ImpairedCallee) => Promise<void>;
type Request = Readonly<Record<string, unknown>>;
/** `latestMs`: the longest delay with which the callee sent a packet. */
export type BatchedEvents = ReceivedEvents & { readonly latestMs: number };
/** `stoodStillMs`: the longest standstill of the gateway's media. */
type Tried = { readonly received: BatchedEvents; stoodStillMs(): Promise<number> };
export type BatchedCall = {
  /** Passes the received events to `judge`, which throws if something is wrong. */
  readonly judged: (judge: Judge) => Promise<void>;
};
type Judge = (received: BatchedEvents) => void;

type Tries = { readonly first: Promise<Tried>; readonly again: () => Promise<Tried> };
type Placed = { readonly laptop: Laptop; readonly watch: StandstillWatch };

export function createCallBatch() {
  const calls: ((placed: Placed) => Promise<unknown>)[] = [];

  function add(script: Script, request: Request, isEnded: boolean): BatchedCall {
    let tries: Tries | undefined;
    calls.push(({ laptop, watch }) => {
      const place = () => converse(laptop, script, request, isEnded);
      const first = place().then((received) => ({
        received,
        stoodStillMs: () => watch.longestMs(),
      }));
      tries = { first, again: () => watched(laptop, place) };
      return first;
    });
    return {
      async judged(judge) {
        if (tries === undefined) throw new Error('the calls were not placed');
        await retryUntilRight(tries, judge);
      },
    };
  }

  return {
    /** A call to a callee that runs `script`. The dialer ends it when detection has stopped. */
    call: (script: Script, request: Request = {}) => add(script, request, true),
    /** The same, but only the gateway ends the call. */
    callEndedByGateway: (script: Script, request: Request = {}) => add(script, request, false),
    place: (laptop: Laptop): void => {
      const watch = watchOf(laptop);
      // The test that judges the call reports its failure.
      const all = Promise.allSettled(calls.map((call) => call({ laptop, watch })));
      // If the gateway doesn't respond now, we ask again when judging a call.
      watch.during(() => all).catch(() => undefined);
    },
  };
}

async function retryUntilRight({ first, again }: Tries, judge: Judge): Promise<void> {
  let tried = await first;
  for (let tries = 1; ; tries += 1) {
    try {
      judge(tried.received);
      return;
    } catch (error) {
      const stoodStillMs = Math.max(tried.received.latestMs, await tried.stoodStillMs());
      const unheardMs = unheardIn(tried.received);
      const isDisturbed = stoodStillMs >= standstillMs || unheardMs > 0;
      if (tries === maxTries || !isDisturbed) throw error;
      const why = `a process stood still for ${stoodStillMs} ms, ${unheardMs} ms were not heard`;
      console.error(`placed again because ${why}:`, error);
    }
    tried = await again();
  }
}

/** Returns for how long detection heard nothing because the gateway was too busy. */
function unheardIn({ events }: BatchedEvents): number {
  return Math.max(0, ...events.map(({ unheardMs = 0 }) => unheardMs));
}

function watchOf({ gateway }: Laptop): StandstillWatch {
  return new StandstillWatch(() => ticksLateOf(gateway.runtime), sampleEveryMs);
}

async function watched(laptop: Laptop, place: () => Promise<BatchedEvents>): Promise<Tried> {
  const watch = watchOf(laptop);
  return { received: await watch.during(place), stoodStillMs: () => watch.longestMs() };
}

async function converse(
  laptop: Laptop,
  script: Script,
  request: Request,
  isEnded: boolean,
): Promise<BatchedEvents> {
  const called = await ImpairedCallee.called((target) => laptop.dial(target, request));
  const { callId } = called.placed;
  await using callee = called.callee;
  const stopped = untilDetectionStopped(laptop, callId).then(() => callee.line.stop());
  await Promise.all([script(callee), stopped]);
  await Promise.all([callee.isHungUp(), isEnded && laptop.gateway.dialer.end(callId)]);
  return { ...(await receivedEvents(laptop, callId)), latestMs: callee.line.latestMs };
}
