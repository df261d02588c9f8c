// A detector that follows a script, for tests through the real worker. The setting of the word
// count selects the script.

import type { AmdSettings } from '../../../src/calls/call-types.ts';
import type { AmdEvent } from '../../../src/calls/detection/amd-event.ts';
import type { Detector } from '../../../src/media/detector-port.ts';

export const script = {
  /** Reports a person at the first loud frame. */
  firstSound: 1,
  /** Throws at the third frame. */
  throws: 2,
  /** Ends the whole worker thread at the third frame. */
  kills: 3,
  /** Throws when it is created. */
  throwsAtStart: 4,
  /** Keeps the whole worker thread busy for half a second at the third frame. */
  blocks: 5,
} as const;

export function createDetector(settings: AmdSettings): Detector {
  const chosen = settings.thresholdWordCount;
  if (chosen === script.throwsAtStart) throw new Error('scripted');
  let frames = 0;
  let done = false;
  const stopped = (reason: string): AmdEvent => {
    done = true;
    return { event: 'amd_stopped', reason, elapsedMs: frames * 20 };
  };
  return {
    get done() {
      return done;
    },
    push(frame) {
      frames += 1;
      if (chosen === script.throws && frames === 3) throw new Error('scripted');
      if (chosen === script.kills && frames === 3) process.exit(3);
      if (chosen === script.blocks && frames === 3) standStill();
      if (chosen !== script.firstSound || !frame.some((sample) => Math.abs(sample) > 1_000)) {
        return [];
      }
      const elapsedMs = frames * 20;
      return [
        { event: 'amd_human_detected', reason: 'scripted', elapsedMs },
        stopped('human-detected'),
      ];
    },
    stop: (reason) => [stopped(reason)],
  };
}

export const standstillMs = 500;

function standStill(): void {
  const endMs = performance.now() + standstillMs;
  while (performance.now() < endMs);
}
