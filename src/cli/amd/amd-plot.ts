// Builds the page for `offhook amd --plot`, a single HTML file that works offline. The console's
// code does the drawing, so all we do here is convert a recording to its input.

import { frameMs, frameSamples } from '../../amd/frame.ts';
import { FrameAnalyzer } from '../../amd/frame-analyzer.ts';
import type { AmdEvent } from '../../calls/detection/amd-event.ts';
import { standalonePage } from '../../console/standalone-page.ts';
import { EnvelopeRecorder } from '../../media/envelope-recorder.ts';
import { encode } from '../../media/g711.ts';
import { plural } from './amd-lines.ts';
import type { Verdict } from './amd-listen.ts';

/** A lane below the waveform. An item with `untilMs` is drawn as a bar. */
export type PlottedLane = {
  readonly kind: string;
  readonly name: string;
  readonly items: readonly {
    readonly atMs: number;
    readonly untilMs?: number;
    readonly text: string;
    readonly tone?: string;
  }[];
};

export type Plotted = {
  readonly file: string;
  readonly durationMs: number;
  readonly events: readonly AmdEvent[];
  readonly verdict: Verdict;
  readonly samples: Int16Array;
  /**
   * For a labelled recording: its label, the mistakes that detection made, and a lane that shows
   * the correct result.
   */
  readonly truth?: {
    readonly label: string;
    readonly faults: readonly string[];
    readonly lane: PlottedLane;
  };
};

const folder = new URL('../../../src/cli/amd/page/', import.meta.url);
const consolePage = new URL('../../../src/console/page/', import.meta.url);

export async function plotPage(recordings: readonly Plotted[]): Promise<string> {
  return await standalonePage({
    title: `Machine detection: ${plural(recordings.length, 'recording')}`,
    script: new URL('plot.js', folder),
    styles: [
      ...['base.css', 'call.css', 'timeline.css'].map((name) => new URL(name, consolePage)),
      new URL('plot.css', folder),
    ],
    data: recordings.map(drawable),
  });
}

function drawable({ file, verdict, durationMs, samples, events, truth }: Plotted): object {
  const stoppedMs = events.at(-1)?.elapsedMs ?? durationMs;
  return {
    ...{ file, verdict, durationMs, events },
    group: truth?.label ?? verdict,
    faults: truth?.faults,
    peak: peakText(samples),
    audio: envelopeOf(samples, Math.max(durationMs, stoppedMs)),
    lanes: [...heardLanes(samples, stoppedMs), ...(truth === undefined ? [] : [truth.lane])],
  };
}

/** Returns the recording's loudness, in the format that the gateway stores for a call. */
function envelopeOf(samples: Int16Array, lengthMs: number): object {
  const recorder = new EnvelopeRecorder();
  for (let at = 0; at < (lengthMs / frameMs) * frameSamples; at += frameSamples) {
    const packet = encode('PCMU', samples.subarray(at, at + frameSamples));
    recorder.hear(packet, 0, packet.length, 'PCMU');
    recorder.tick();
  }
  const { heard, stepMs } = recorder.read();
  return { heard: Buffer.from(heard).toString('base64'), stepMs };
}

function heardLanes(samples: Int16Array, stoppedMs: number): PlottedLane[] {
  const { speech, tones, wordsMs } = traceOf(samples, stoppedMs);
  const bars = (spans: typeof speech, text: string, tone: string) =>
    spans.map(({ startMs, endMs }) => ({ atMs: startMs, untilMs: endMs, text, tone }));
  return [
    { kind: 'speech', name: 'Heard as speech', items: bars(speech, 'speech', 'speech') },
    { kind: 'tones', name: 'Heard as a tone', items: bars(tones, 'tone', 'beep') },
    {
      ...{ kind: 'words', name: 'Words counted' },
      items: wordsMs.map((atMs, index) => ({ atMs, text: String(index + 1) })),
    },
  ];
}

function peakText(samples: Int16Array): string {
  let peak = 0;
  for (const sample of samples) peak = Math.max(peak, Math.abs(sample));
  return peak === 0 ? 'silent' : `peak ${(20 * Math.log10(peak / 32_768)).toFixed(0)} dBFS`;
}

type Span = { readonly startMs: number; readonly endMs: number };
type Trace = {
  readonly speech: readonly Span[];
  readonly tones: readonly Span[];
  /** The times at which words were counted. */
  readonly wordsMs: readonly number[];
};

/**
 * The detector reports a tone this many frames after its end, once it's clear that the tone is
 * isolated.
 */
const reportDelayFrames = 5;

/** Returns what the detector heard in each frame until it stopped. */
function traceOf(samples: Int16Array, stoppedMs: number): Trace {
  const analyzer = new FrameAnalyzer();
  const speech: boolean[] = [];
  const tones: boolean[] = [];
  const wordsMs: number[] = [];
  const end = Math.min(samples.length, (stoppedMs / frameMs) * frameSamples);
  for (let at = 0; at + frameSamples <= end; at += frameSamples) {
    const heard = analyzer.analyze(samples.subarray(at, at + frameSamples), false);
    if (heard.found !== undefined) {
      // We can't classify a tone until it has ended, so mark all of its frames now.
      const end = Math.max(tones.lastIndexOf(true) + 1, tones.length - reportDelayFrames);
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
