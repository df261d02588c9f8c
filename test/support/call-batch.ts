// Calls that take seconds each: a test file describes them where it tests them, places all of them together before its tests,
// and each test judges what its call came to. Where the gateway, or the callee, stood still meanwhile and the judgement is that
// something is wrong, the call is placed again: the one did not hear, or the other did not say, what it should have.

import { ImpairedCallee } from './impaired-callee.ts';
import type { Laptop } from './laptop.ts';
import { type ReceivedEvents, receivedEvents, untilDetectionStopped } from './received-events.ts';
import {
  lookEveryMs,
  maxTries,
  StandstillWatch,
  standstillMs,
  ticksLateOf,
} from './undisturbed.ts';

export type Script = (callee: ImpairedCallee) => Promise<void>;
type Request = Readonly<Record<string, unknown>>;
/** `latestMs`: how late the callee's latest packet was sent. */
export type BatchedEvents = ReceivedEvents & { readonly latestMs: number };
/** `stoodStillMs`: of the gateway's media, at the longest. */
type Tried = { readonly received: BatchedEvents; stoodStillMs(): Promise<number> };
export type BatchedCall = {
  /** `judge` fails with what is wrong. */
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
        await untilRight(tries, judge);
      },
    };
  }

  return {
    /** To a callee that does this, ended by the dialer when detection has stopped. */
    call: (script: Script, request: Request = {}) => add(script, request, true),
    /** The same, and only the gateway ends it. */
    callEndedByGateway: (script: Script, request: Request = {}) => add(script, request, false),
    place: (laptop: Laptop): void => {
      const watch = watchOf(laptop);
      // A call that failed is its test's to tell of.
      const all = Promise.allSettled(calls.map((call) => call({ laptop, watch })));
      // Who cannot be asked now is asked when a call is judged.
      watch.during(() => all).catch(() => undefined);
    },
  };
}

async function untilRight({ first, again }: Tries, judge: Judge): Promise<void> {
  let tried = await first;
  for (let tries = 1; ; tries += 1) {
    try {
      judge(tried.received);
      return;
    } catch (error) {
      const stoodStillMs = Math.max(tried.received.latestMs, await tried.stoodStillMs());
      if (tries === maxTries || stoodStillMs < standstillMs) throw error;
      console.error(`placed again, as a process stood still for ${stoodStillMs} ms:`, error);
    }
    tried = await again();
  }
}

function watchOf({ gateway }: Laptop): StandstillWatch {
  return new StandstillWatch(() => ticksLateOf(gateway.runtime), lookEveryMs);
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
