// Listens to a line on which we speak ourselves, beside detection and after it: beeps as soon as they end, and who speaks. Its
// verdicts are not events of the call.

import type { Company } from './beep-belief.ts';
import { createBeepBelief } from './beep-belief.ts';
import { createEchoGate } from './echo-gate.ts';
import { openFrameAnalyzer } from './frame-analyzer.ts';
import { decide } from './verdict.ts';
import type { Utterance } from './voice/utterance.ts';

/** One object, changed with every frame. */
export type HeardOnLine = {
  /** A beep ended: within 80 ms where it is plainly one. Each is told once. */
  readonly beep: boolean;
  /** A tone is under way whose meaning is not known. */
  readonly tonePending: boolean;
  /** Of what was said since `restart`, pauses left out, and since its last word. */
  readonly speechMs: number;
  readonly pauseMs: number;
  /** Who that was. */
  readonly who: 'human' | 'machine' | undefined;
};

export type LineListener = {
  /** The next 20 ms, and the power of what was sent in them (1: full scale). */
  push(frame: Int16Array, lost: boolean, sentPower: number): HeardOnLine;
  /** The next to speak is another voice. */
  restart(): void;
  /** Gives memory back; afterwards nothing is heard. */
  release(): void;
};

/** There is a machine, or its caller did not ask for detection. */
const company: Company = 'machine';

/** @throws Error when the memory of WebAssembly is exhausted. */
export function openLineListener(): LineListener {
  const analyzer = openFrameAnalyzer();
  const gate = createEchoGate();
  const belief = createBeepBelief();
  let isTold = false;
  const heard: { -readonly [Member in keyof HeardOnLine]: HeardOnLine[Member] } = {
    beep: false,
    tonePending: false,
    speechMs: 0,
    pauseMs: 0,
    who: undefined,
  };

  function hearSpeaker(utterance: Utterance | undefined): void {
    heard.speechMs = utterance?.speechMs ?? 0;
    heard.pauseMs = utterance?.pauseMs ?? 0;
    heard.who = utterance === undefined ? undefined : decide(utterance, undefined)?.who;
  }

  return {
    push(frame, lost, sentPower) {
      const { utterance, found, ending, tonePending, toneHz } = analyzer.analyze(
        gate.pass(frame, sentPower),
        lost,
      );
      const isEarly = ending?.kind === 'beep' && ending.doubt !== 'cadence' && !belief.waiting;
      const believed = belief.take(found, toneHz, utterance?.pauseMs === 0, company);
      heard.beep = isEarly || (believed?.kind === 'beep' && !isTold);
      if (isEarly) isTold = true;
      else if (found !== undefined || toneHz > 0) isTold = false;
      heard.tonePending = tonePending || belief.waiting;
      hearSpeaker(utterance);
      return heard;
    },
    restart: () => analyzer.restart(),
    release: () => analyzer.release(),
  };
}
