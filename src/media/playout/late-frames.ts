// Media workers that stood still: what each reports, and what the log says of all of them. The metric
// `offhook_media_frames_late_total` counts every frame.

import type { Logger } from '../../lib/logger.ts';

const longestWaitMs = 1_000;
const warningEveryMs = 60_000;

export type LateFramesReport = {
  /** Frames of 20 ms of all calls that detection or a bot heard over 60 ms late, or not at all. */
  readonly frames: number;
  /** How late the playout clock was, at most. */
  readonly lateMs: number;
};

/**
 * In the worker: one report for each standstill, when the worker has caught up. A worker that never catches up, because it has more to
 * do than its processor can, reports once a second.
 */
export class LateFrames {
  readonly #counts: { readonly framesLate: number };
  readonly #report: (report: LateFramesReport) => void;
  #reported = 0;
  #lateMs = 0;
  /** When the first frame came late that is not reported yet. */
  #sinceMs: number | undefined;

  constructor(counts: { readonly framesLate: number }, report: (report: LateFramesReport) => void) {
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

/** In the main thread: one warning a minute for all workers, however starved the machine is. */
export function createLateFramesLog(
  logger: Logger,
  nowMs: () => number = () => performance.now(),
): (report: LateFramesReport) => void {
  let mayWarnAtMs = Number.NEGATIVE_INFINITY;
  let frames = 0;
  let lateMs = 0;
  return (report) => {
    frames += report.frames;
    lateMs = Math.max(lateMs, report.lateMs);
    const now = nowMs();
    if (now < mayWarnAtMs) return;
    logger.warn({ frames, lateMs }, 'a media worker stood still: detection or a bot heard late');
    mayWarnAtMs = now + warningEveryMs;
    [frames, lateMs] = [0, 0];
  };
}
