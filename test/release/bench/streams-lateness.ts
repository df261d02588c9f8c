// Prints how late packets left: as the media worker counts it, and as the network sees it.

import type { SendLatenessCounts } from '../../../src/media/playout/send-lateness.ts';
import type { SentTimes } from './sent-packets.ts';

/** A far end that buffers 40 ms may have nothing left to play after this. */
const limitMs = 30;

export function latenessBetween(
  before: SendLatenessCounts,
  after: SendLatenessCounts,
): SendLatenessCounts {
  return {
    packetsByMs: after.packetsByMs.map((packets, ms) => packets - (before.packetsByMs[ms] ?? 0)),
    sumMs: after.sumMs - before.sumMs,
  };
}

export function printLateness({
  worker,
  ticker,
  sent,
}: {
  readonly worker: SendLatenessCounts;
  /** A thread that only ticks. If it's late, the machine is to blame. */
  readonly ticker: SendLatenessCounts;
  readonly sent: SentTimes | undefined;
}): void {
  printLine('ticks of a thread that does nothing else, late by ms', valuesOf(ticker), 0);
  printLine('late leaving, as the worker counts, ms', valuesOf(worker), 0);
  if (sent === undefined) {
    console.log('  dumpcap can’t record, so nothing is known of the network’s side');
    return;
  }
  printLine('late leaving, on the network, ms', sent.lateMs, 1);
  printLine('between packets, on the network, ms', sent.intervalsMs, 1);
}

/** Rounds up, because a bin has everything from `ms` up to the next. */
function valuesOf({ packetsByMs }: SendLatenessCounts): readonly number[] {
  return packetsByMs.flatMap((packets, ms) => new Array<number>(packets).fill(ms + 1));
}

function printLine(what: string, values: readonly number[], digits: number): void {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (part: number): string =>
    (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN).toFixed(
      digits,
    );
  const over = sorted.filter((value) => value > limitMs).length;
  const share = `${((100 * over) / sorted.length).toFixed(3)}% over ${limitMs}`;
  console.log(
    `  ${what.padEnd(50)} ${at(0.5)}  ${at(0.99)}  ${at(0.999)}  ${at(1)}  ${share} of ${sorted.length}`,
  );
}
