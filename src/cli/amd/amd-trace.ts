// What the detector goes by, frame by frame, for the picture: speech, words and tones. Only drawn, never judged.

import { frameMs, frameSamples } from '../../amd/frame.ts';
import { openFrameAnalyzer } from '../../amd/frame-analyzer.ts';

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
  const analyzer = openFrameAnalyzer();
  const speech: boolean[] = [];
  const tones: boolean[] = [];
  const wordsMs: number[] = [];
  const end = Math.min(samples.length, (stoppedMs / frameMs) * frameSamples);
  for (let at = 0; at + frameSamples <= end; at += frameSamples) {
    const heard = analyzer.analyze(samples.subarray(at, at + frameSamples), false);
    if (heard.found !== undefined) {
      // Only its end tells what it was: then all of it was the tone.
      const end = Math.max(tones.lastIndexOf(true) + 1, tones.length - toldAfterFrames);
      const start = Math.max(0, end - Math.round(heard.found.ms / frameMs));
      tones.fill(true, start, end);
      speech.fill(false, start, end);
    }
    speech.push(heard.speech);
    tones.push(heard.tonal);
    const words = heard.utterance?.words ?? 0;
    while (wordsMs.length < words) wordsMs.push(speech.length * frameMs);
  }
  analyzer.release();
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
