// Places calls with detection at a steady rate, and checks their verdicts.

import { setTimeout as pause } from 'node:timers/promises';
import type { GatewayProcess } from '../../support/gateway-process.ts';
import { type Callee, callSeconds } from './amd-calls-callee.ts';
import type { TimedReceiver } from './timed-receiver.ts';

const maxEndMs = 60_000;

export type Load = { readonly rate: number; readonly calls: number };
export type World = { readonly callee: Callee; readonly receiver: TimedReceiver };
export type PlacedCalls = {
  /** One line per wrong verdict: the recording and the verdict. */
  readonly wrong: readonly string[];
  /** The achieved rate in calls per second. */
  readonly rate: number;
};

/** Returns once all calls have ended and their last notifications have arrived. */
export async function placeCalls(
  gateway: GatewayProcess,
  world: World,
  load: Load,
): Promise<PlacedCalls> {
  const startedAt = performance.now();
  const placed: Promise<string | undefined>[] = [];
  for (let index = 0; index < load.calls; index += 1) {
    await pause(Math.max(0, startedAt + (index * 1_000) / load.rate - performance.now()));
    const call = placeAndCheck(gateway, world, index % world.callee.recordings);
    // The promise is awaited below. A call that fails before then must not end the process, because
    // it still has to stop other processes.
    call.catch(() => undefined);
    placed.push(call);
  }
  const rate = ((load.calls - 1) * 1_000) / (performance.now() - startedAt);
  const verdicts = await Promise.all(placed);
  return { wrong: verdicts.filter((wrong) => wrong !== undefined), rate };
}

/**
 * Places one call. Returns undefined if its verdict is right, and a description of the verdict
 * otherwise.
 */
async function placeAndCheck(
  gateway: GatewayProcess,
  { callee, receiver }: World,
  recording: number,
): Promise<string | undefined> {
  const { callId } = await gateway.dialer.dial({
    target: callee.uri(recording),
    notifyurl: receiver.url,
    machineDetection: 'detect',
  });
  const late = new AbortController();
  const last = await Promise.race([
    receiver.ended(callId),
    pause(callSeconds * 1_000 + maxEndMs, undefined, { signal: late.signal }),
  ]);
  late.abort();
  if (last === undefined) throw new Error('a call did not end');
  const { status, machineDetection } = last.body;
  if (status === 'completed' && machineDetection === callee.verdictOf(recording)) return undefined;
  return `${callee.nameOf(recording)}: ${status}, ${machineDetection ?? 'no verdict'}`;
}
