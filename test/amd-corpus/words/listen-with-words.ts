// Runs one answer through the detector with the recogniser beside it, as in a call, in step: after
// each message of audio it waits for the recogniser's answer. The sample clock is the only clock of
// both, so an hour of calls takes a minute.

import { createDetector, type Detector } from '../../../src/amd/detector.ts';
import { frameMs, frameSamples } from '../../../src/amd/frame.ts';
import { chunkMs } from '../../../src/amd/stt/protocol.ts';
import { createTranscribedDetector } from '../../../src/amd/stt/transcribed-detector.ts';
import { type AmdSettings, defaultAmdTimers } from '../../../src/calls/call-types.ts';
import type { AmdEvent } from '../../../src/calls/detection/amd-event.ts';
import type { Engine, EngineKind } from './engine.ts';
import type { HeardWord } from './mishearing.ts';

const provider = 'engine';
/** Long enough for the detector to stop by itself. */
const silenceMs = 130_000;
/**
 * A connection is given up if no audio comes for 5 s, or if it is not up within 3 s. This process
 * may have been stalled for that long.
 */
const patienceMs = 6_000;
const mostTries = 3;

type Heard = { readonly words: readonly HeardWord[]; readonly language: string };

/** Returns the same events each time, so a run that lost its recogniser is repeated. */
export async function listenWithWords(
  samples: Int16Array,
  heard: Heard,
  engine: Engine,
  kind: EngineKind,
): Promise<readonly AmdEvent[]> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await listenOnce(samples, heard, engine, kind);
    } catch (error) {
      if (tries === mostTries) throw error;
    }
  }
}

async function listenOnce(
  samples: Int16Array,
  heard: Heard,
  engine: Engine,
  kind: EngineKind,
): Promise<readonly AmdEvent[]> {
  engine.expect(heard.words);
  const { detector, understood, failed } = openCall(engine.url, kind, heard.language);
  const events: AmdEvent[] = [];
  const frame = new Int16Array(frameSamples);
  for (let ms = frameMs; ms <= samples.length / 8 + silenceMs && !detector.done; ms += frameMs) {
    const at = (ms - frameMs) * 8;
    const part = samples.subarray(at, at + frameSamples);
    frame.set(part);
    frame.fill(0, part.length);
    events.push(...detector.push(frame, false));
    if (ms % chunkMs !== 0 || isOver(events, detector)) continue;
    const before = understood();
    // Both ends are in this process, so this takes one or two turns of the event loop.
    await answered(() => understood() > before || failed() !== undefined);
  }
  events.push(...detector.stop('recording-ended'));
  const reason = failed();
  if (reason !== undefined) throw new Error(`the recogniser failed: ${reason}`);
  return events;
}

/**
 * Returns true once the detector no longer listens to the recogniser: after the verdict "human", or
 * at its end.
 */
function isOver(events: readonly AmdEvent[], { done }: Detector): boolean {
  return done || events.some(({ event }) => event === 'amd_human_detected');
}

function openCall(url: string, kind: EngineKind, language: string) {
  let understood = 0;
  let failure: string | undefined;
  const settings: AmdSettings = {
    timers: defaultAmdTimers,
    speechToText: { sttProvider: provider, sttLanguage: language },
  };
  const create = createTranscribedDetector({
    createDetector: (given) => {
      const inner = createDetector(given);
      const understand = inner.understand.bind(inner);
      inner.understand = (transcription) => {
        understood += 1;
        understand(transcription);
      };
      return inner;
    },
    speechToText: { providers: new Map([[provider, { kind, url, parameters: {} }]]) },
    onFailed: ({ reason }) => {
      failure = reason;
    },
  });
  return { detector: create(settings), understood: () => understood, failed: () => failure };
}

/**
 * Waits for the recogniser's answer to one frame. Both ends are in this process, so it comes within
 * a turn or two of the event loop. Polling every few milliseconds would make a corpus of thousands
 * of answers take hours.
 */
async function answered(isAnswered: () => boolean): Promise<void> {
  const deadlineMs = performance.now() + patienceMs;
  while (!isAnswered()) {
    if (performance.now() > deadlineMs) throw new Error('the recogniser did not answer a frame');
    await new Promise((resolve) => setImmediate(resolve));
  }
}
