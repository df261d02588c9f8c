// What the detector goes by, frame by frame, for the picture: speech, words and tones. Only drawn, never judged.

import { decibels, frameMs, frameSamples, meanSquare } from '../amd/frame.ts';
import { createToneDetector } from '../amd/tone-detector.ts';
import { createUtteranceTracker } from '../amd/utterance.ts';
import { createVoiceActivity } from '../amd/voice-activity.ts';

export type Span = { readonly startMs: number; readonly endMs: number };
export type Trace = {
  readonly speech: readonly Span[];
  readonly tones: readonly Span[];
  /** When each further word was counted. */
  readonly wordsMs: readonly number[];
};

/** A tone is told this long after its end: it must be seen to stand alone. */
const toldAfterFrames = 5;

/** Until detection stopped: what came later was not listened to. */
export function traceOf(samples: Int16Array, stoppedMs: number): Trace {
  const voiceActivity = createVoiceActivity();
  const toneDetector = createToneDetector();
  const utterances = createUtteranceTracker();
  const speech: boolean[] = [];
  const tones: boolean[] = [];
  const wordsMs: number[] = [];
  const end = Math.min(samples.length, (stoppedMs / frameMs) * frameSamples);
  for (let at = 0; at + frameSamples <= end; at += frameSamples) {
    const frame = samples.subarray(at, at + frameSamples);
    const power = meanSquare(frame);
    const spoken = utterances.current() !== undefined;
    const { tonal, found } = toneDetector.push(frame, decibels(power), spoken);
    if (found !== undefined) {
      utterances.wasTone();
      // Only its end tells what it was: then all of it was the tone.
      const end = Math.max(tones.lastIndexOf(true) + 1, tones.length - toldAfterFrames);
      const start = Math.max(0, end - Math.round(found.ms / frameMs));
      tones.fill(true, start, end);
      speech.fill(false, start, end);
    }
    const voice = voiceActivity.push(frame, power, tonal);
    if (utterances.push(voice)) voiceActivity.confirm();
    speech.push(voice.speech);
    tones.push(tonal);
    const words = utterances.current()?.words ?? 0;
    while (wordsMs.length < words) wordsMs.push(speech.length * frameMs);
  }
  voiceActivity.release();
  return { speech: spansOf(speech), tones: spansOf(tones), wordsMs };
}

function spansOf(frames: readonly boolean[]): Span[] {
  const spans: Span[] = [];
  let startMs: number | undefined;
  for (const [index, on] of [...frames, false].entries()) {
    const nowMs = index * frameMs;
    if (on) startMs ??= nowMs;
    if (on || startMs === undefined) continue;
    spans.push({ startMs, endMs: nowMs });
    startMs = undefined;
  }
  return spans;
}
