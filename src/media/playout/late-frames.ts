// Reports media worker stalls and logs them. The log is rate-limited, whereas the metric
// `offhook_media_frames_late_total` counts every late frame.

import type { Logger } from '../../lib/logger.ts';

const maxReportDelayMs = 1_000;
const warningIntervalMs = 60_000;

export type LateFramesReport = {
  /**
   * Number of 20 ms frames, across all calls, that detection or a bot received over 60 ms late or
   * not at all.
   */
  readonly frames: number;
  /** How many frames were never heard. */
  readonly unheard: number;
  /** The playout clock's longest delay. */
  readonly lateMs: number;
};

type LateCounts = { readonly framesLate: number; readonly framesUnheard: number };

/**
 * Runs in the worker. It sends one report per stall, once the worker has caught up. An overloaded
 * worker never catches up, so in that case it sends a report every second.
 */
export class LateFrames {
  readonly #counts: LateCounts;
  readonly #report: (report: LateFramesReport) => void;
  #reported = 0;
  #unheardReported = 0;
  #lateMs = 0;
  /**
   * Time of the first late frame that hasn't been reported yet. Undefined if all have been
   * reported.
   */
  #sinceMs: number | undefined;

  constructor(counts: LateCounts, report: (report: LateFramesReport) => void) {
    this.#counts = counts;
    this.#report = report;
  }

  /** Checks for late frames after the playout clock has run. */
  check(nowMs: number, lateMs: number, hasCaughtUp: boolean): void {
    const frames = this.#counts.framesLate - this.#reported;
    if (frames === 0) return;
    this.#sinceMs ??= nowMs;
    this.#lateMs = Math.max(this.#lateMs, lateMs);
    if (!hasCaughtUp && nowMs - this.#sinceMs < maxReportDelayMs) return;
    const unheard = Math.round(this.#counts.framesUnheard - this.#unheardReported);
    this.#report({ frames, unheard, lateMs: Math.round(this.#lateMs) });
    this.#reported = this.#counts.framesLate;
    this.#unheardReported += unheard;
    this.#lateMs = 0;
    this.#sinceMs = undefined;
  }
}

/**
 * Runs in the main thread. However badly the machine is overloaded, this logs at most one warning
 * per minute for all workers.
 */
export function createLateFramesLog(
  logger: Logger,
  nowMs: () => number = () => performance.now(),
): (report: LateFramesReport) => void {
  let mayWarnAtMs = Number.NEGATIVE_INFINITY;
  let frames = 0;
  let unheard = 0;
  let lateMs = 0;
  return (report) => {
    frames += report.frames;
    unheard += report.unheard;
    lateMs = Math.max(lateMs, report.lateMs);
    const now = nowMs();
    if (now < mayWarnAtMs) return;
    logger.warn(
      { frames, unheard, lateMs },
      'a media worker stalled, so detection or a bot heard frames late, or not at all',
    );
    mayWarnAtMs = now + warningIntervalMs;
    [frames, unheard, lateMs] = [0, 0, 0];
  };
}
