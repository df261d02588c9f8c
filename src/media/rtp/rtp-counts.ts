// What a worker's sessions have counted together.

import { createJitterStatistics, type JitterStatistics } from './jitter-buffer.ts';

export type RtpCounts = {
  received: number;
  discarded: number;
  sent: number;
  /** What a late clock left out. */
  unsent: number;
  /** Frames of late ticks (over 60 ms), in calls that detection or a bot hears: heard late, or never. */
  framesLate: number;
  readonly jitter: JitterStatistics;
};

export function createRtpCounts(): RtpCounts {
  return {
    received: 0,
    discarded: 0,
    sent: 0,
    unsent: 0,
    framesLate: 0,
    jitter: createJitterStatistics(),
  };
}
