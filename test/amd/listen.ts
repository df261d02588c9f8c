// Feeds recordings and synthetic audio to a detector, faster than real time.

import { createDetector } from '../../src/amd/detector.ts';
import { frameMs, frameSamples } from '../../src/amd/frame.ts';
import { type AmdSettings, defaultAmdTimers } from '../../src/calls/call-types.ts';
import type { AmdEvent, AmdEventName } from '../../src/calls/detection/amd-event.ts';

export const defaultSettings: AmdSettings = { timers: defaultAmdTimers };

/** Longer than any timer: whatever it hears, the detector has stopped by then. */
const longestMs = 70_000;

/** Returns all events for this audio followed by silence. */
export function listen(samples: Int16Array, settings: AmdSettings = defaultSettings): AmdEvent[] {
  const detector = createDetector(settings);
  const events: AmdEvent[] = [];
  const frame = new Int16Array(frameSamples);
  for (let ms = 0; ms < longestMs && !detector.done; ms += frameMs) {
    const at = (ms / frameMs) * frameSamples;
    frame.fill(0);
    frame.set(samples.subarray(at, at + frameSamples));
    events.push(...detector.push(frame, false));
  }
  return events;
}

export function names(events: readonly AmdEvent[]): AmdEventName[] {
  return events.map(({ event }) => event);
}
