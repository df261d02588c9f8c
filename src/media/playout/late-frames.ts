// What a worker tells the main thread when it stood still: one report for each standstill, when the
// worker has caught up. A worker that never catches up, because it has more to do than its processor
// can, reports once a second.

import type { RtpCounts } from '../rtp/rtp-counts.ts';

const longestWaitMs = 1_000;

export type LateFramesReport = {
  /** Frames of 20 ms of all calls that detection or a bot heard over 60 ms late, or not at all. */
  readonly frames: number;
  /** How late the playout clock was, at most. */
  readonly lateMs: number;
};

export class LateFrames {
  readonly #counts: Pick<RtpCounts, 'framesLate'>;
  readonly #report: (report: LateFramesReport) => void;
  #reported = 0;
  #lateMs = 0;
  /** When the first frame came late that is not reported yet. */
  #sinceMs: number | undefined;

  constructor(counts: Pick<RtpCounts, 'framesLate'>, report: (report: LateFramesReport) => void) {
    this.#counts = counts;
    this.#report = report;
  }

  /** The playout clock has run. */
  look(nowMs: number, lateMs: number, hasCaughtUp: boolean): void {
    const frames = this.#counts.framesLate - this.#reported;
    if (frames === 0) return;
    this.#sinceMs ??= nowMs;
    this.#lateMs = Math.max(this.#lateMs, lateMs);
    if (!hasCaughtUp && nowMs - this.#sinceMs < longestWaitMs) return;
    this.#report({ frames, lateMs: Math.round(this.#lateMs) });
    this.#reported = this.#counts.framesLate;
    this.#lateMs = 0;
    this.#sinceMs = undefined;
  }
}
