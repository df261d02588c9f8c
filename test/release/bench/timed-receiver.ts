// Records when each notification arrived, and wakes the code that waits for the end of a call.

import { isTerminal, type Received, type Receiver } from '../../support/receiver.ts';

export type TimedReceiver = ReturnType<typeof timed>;

export function timed(receiver: Receiver) {
  const arrivals: { readonly received: Received; readonly at: number }[] = [];
  const waiting = new Map<string, (received: Received) => void>();
  const early = new Map<string, Received>();
  const known = new Set<string>();
  const over = new Set<string>();
  receiver.onReceived((received) => {
    arrivals.push({ received, at: Date.now() });
    known.add(received.body.callId);
    if (!isTerminal(received.body)) return;
    over.add(received.body.callId);
    const wake = waiting.get(received.body.callId);
    waiting.delete(received.body.callId);
    if (wake === undefined) early.set(received.body.callId, received);
    else wake(received);
  });
  return {
    ...receiver,
    arrivals,
    has: (callId: string) => known.has(callId),
    hasEnded: (callId: string) => over.has(callId),
    ended: (callId: string) =>
      new Promise<Received>((resolve) => {
        const received = early.get(callId);
        if (received === undefined) waiting.set(callId, resolve);
        else resolve(received);
        early.delete(callId);
      }),
  };
}
