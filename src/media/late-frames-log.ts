// What the log says of media workers that stood still: one warning a minute for all of them, however
// starved the machine is. The metric `offhook_media_frames_late_total` counts every frame.

import type { Logger } from '../lib/logger.ts';
import type { LateFramesReport } from './playout/late-frames.ts';

const warningEveryMs = 60_000;

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
