// Calls that take seconds each: a test file describes them where it tests them, places all of them together before its tests,
// and each test waits for what its call came to.

import { ImpairedCallee } from './impaired-callee.ts';
import type { Laptop } from './laptop.ts';
import { type ReceivedEvents, receivedEvents, untilDetectionStopped } from './received-events.ts';

export type Script = (callee: ImpairedCallee) => Promise<void>;
type Request = Readonly<Record<string, unknown>>;
/** `latestMs`: how late the callee's latest packet was sent. */
export type BatchedEvents = ReceivedEvents & { readonly latestMs: number };
export type BatchedCall = { readonly received: () => Promise<BatchedEvents> };

export function createCallBatch() {
  const calls: ((laptop: Laptop) => void)[] = [];

  function add(script: Script, request: Request, isEnded: boolean): BatchedCall {
    let received: Promise<BatchedEvents> | undefined;
    calls.push((laptop) => {
      received = converse(laptop, script, request, isEnded);
      // Its test says so.
      received.catch(() => undefined);
    });
    return {
      received() {
        if (received === undefined) throw new Error('the calls were not placed');
        return received;
      },
    };
  }

  return {
    /** To a callee that does this, ended by the dialer when detection has stopped. */
    call: (script: Script, request: Request = {}) => add(script, request, true),
    /** The same, and nobody but the gateway ends it. */
    callEndedByGateway: (script: Script, request: Request = {}) => add(script, request, false),
    place: (laptop: Laptop): void => {
      for (const call of calls) call(laptop);
    },
  };
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
