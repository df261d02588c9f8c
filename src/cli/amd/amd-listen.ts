// Runs a recording through the detector, faster than real time. The events are the same as in a
// call with the same audio.

import { createDetector } from '../../amd/detector.ts';
import { frameMs, frameSamples } from '../../amd/frame.ts';
import type { AmdSettings } from '../../calls/call-types.ts';
import type { AmdEvent, AmdEventName } from '../../calls/detection/amd-event.ts';

export type Verdict = 'human' | 'machine' | 'no-speech' | 'timeout' | 'error';

export type FirstVerdict = { readonly verdict: Verdict; readonly elapsedMs: number };

/** Every detector has stopped by then, because its timers can't exceed 120 s. */
const longestSilenceMs = 400_000;

const verdicts: Readonly<Partial<Record<AmdEventName, Verdict>>> = {
  amd_human_detected: 'human',
  amd_machine_detected: 'machine',
  amd_no_speech_detected: 'no-speech',
  amd_decision_timeout: 'timeout',
  amd_error: 'error',
};

/**
 * Returns a recording's events. After the end of the recording, the detector gets silence until it
 * stops.
 */
export function listenTo(samples: Int16Array, settings: AmdSettings): readonly AmdEvent[] {
  const detector = createDetector(settings);
  const events: AmdEvent[] = [];
  const frame = new Int16Array(frameSamples);
  const frames = samples.length / frameSamples + longestSilenceMs / frameMs;
  for (let index = 0; index < frames && !detector.done; index += 1) {
    const part = samples.subarray(index * frameSamples, (index + 1) * frameSamples);
    frame.set(part);
    frame.fill(0, part.length);
    events.push(...detector.push(frame, false));
  }
  events.push(...detector.stop('recording-ended'));
  return events;
}

/**
 * Returns the first verdict, or `machine` if a tone has corrected that verdict, because only
 * machines beep.
 */
export function verdictFrom(events: readonly AmdEvent[]): Verdict {
  return correctionFrom(events) === undefined ? firstVerdictFrom(events).verdict : 'machine';
}

/** Returns the verdict that a call's application gets first, and when. */
export function firstVerdictFrom(events: readonly AmdEvent[]): FirstVerdict {
  for (const { event, elapsedMs } of events) {
    const verdict = verdicts[event];
    if (verdict !== undefined) return { verdict, elapsedMs };
  }
  return { verdict: 'timeout', elapsedMs: events.at(-1)?.elapsedMs ?? 0 };
}

/** @returns undefined if the first verdict was never corrected */
export function correctionFrom(events: readonly AmdEvent[]): AmdEvent | undefined {
  return events.find(({ corrects }) => corrects !== undefined);
}
