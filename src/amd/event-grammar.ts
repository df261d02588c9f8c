// The only place that states AMD events, so that their order always is
//   ( human [tone] | [machine] [stopped_speaking] [tone] | no_speech | decision_timeout | error ) stopped
// with stopped_speaking and tone never without a verdict. Owns the timers; each frame tells it what was heard.

import type { AmdEvent, AmdEventName, AmdEvidence, AmdSettings } from '../calls/call-types.ts';
import { frameMs } from './frame.ts';
import { type SettlingPhrase, type Understood, withSecondOpinion } from './stt/understood.ts';
import type { ToneFound } from './tone-detector.ts';
import type { Utterance } from './utterance.ts';
import { decide } from './verdict.ts';

/** A beep this soon after a human verdict takes it back. */
const humanListenMs = 3_000;
/** The wait for a greeting's end, from the answer: the longest announcements, and then some. */
const longestGreetingMs = 60_000;

export type Heard = {
  readonly utterance: Utterance | undefined;
  readonly found: ToneFound | undefined;
  /** A tone is under way: its meaning is not known, so a silence decides nothing yet. */
  readonly tonePending: boolean;
  /** Of a transcript: settles that this is no person. */
  readonly phrase?: SettlingPhrase;
};

type Phase =
  | { readonly name: 'deciding' }
  | { readonly name: 'human'; readonly untilMs: number }
  | { readonly name: 'greeting' }
  | { readonly name: 'awaitingTone' }
  | { readonly name: 'done' };

/** One frame's reaction: what it may look at, and where it states events. */
type Step = {
  readonly settings: AmdSettings;
  readonly elapsedMs: number;
  readonly events: AmdEvent[];
};

export type EventGrammar = {
  /** One frame later. */
  advance(heard: Heard): readonly AmdEvent[];
  /** A recogniser's words, from the next frame on. */
  understand(understood: Understood): void;
  fail(): readonly AmdEvent[];
  stop(reason: string): readonly AmdEvent[];
  readonly done: boolean;
};

export function createEventGrammar(settings: AmdSettings): EventGrammar {
  let elapsedMs = 0;
  let phase: Phase = { name: 'deciding' };
  let understood: Understood | undefined;

  /** Nothing is stated after `amd_stopped`. */
  function take(react: (step: Step) => Phase): readonly AmdEvent[] {
    if (phase.name === 'done') return [];
    const step: Step = { settings, elapsedMs, events: [] };
    phase = react(step);
    return step.events;
  }

  return {
    get done() {
      return phase.name === 'done';
    },
    advance(heard) {
      elapsedMs += frameMs;
      const opinion = withSecondOpinion(heard.utterance, understood, elapsedMs);
      return take((step) => react(phase, { ...heard, ...opinion }, step));
    },
    understand(latest) {
      understood = latest;
    },
    fail() {
      return take((step) => {
        // A verdict that was given stands.
        if (phase.name === 'deciding') state(step, 'amd_error', { reason: 'detector-failed' });
        return stopped(step, 'error');
      });
    },
    stop(reason) {
      return take((step) => stopped(step, reason));
    },
  };
}

function react(phase: Phase, heard: Heard, step: Step): Phase {
  switch (phase.name) {
    case 'deciding':
      return deciding(phase, heard, step);
    case 'human':
      return human(phase, heard, step);
    case 'greeting':
      return greeting(phase, heard, step);
    case 'awaitingTone':
      return awaitingTone(phase, heard, step);
    case 'done':
      return phase;
  }
}

function deciding(phase: Phase, heard: Heard, step: Step): Phase {
  const { utterance, found, phrase } = heard;
  if (found?.kind === 'fax') {
    const evidence = { confidence: 0.9, tone: measured(found), ...spoken(utterance) };
    state(step, 'amd_machine_detected', { reason: 'fax-tone', ...evidence });
    return stopped(step, 'fax-tone');
  }
  if (found?.kind === 'beep') return beepWhileDeciding(found, utterance, step);
  if (phrase !== undefined) {
    state(step, 'amd_machine_detected', { reason: phrase, confidence: 0.95, ...spoken(utterance) });
    return { name: 'greeting' };
  }
  const verdict = heard.tonePending ? undefined : verdictOn(utterance, step);
  return verdict ?? timersWhileDeciding(phase, utterance, step);
}

function beepWhileDeciding(found: ToneFound, utterance: Utterance | undefined, step: Step): Phase {
  const evidence = { confidence: 0.9, tone: measured(found), ...spoken(utterance) };
  state(step, 'amd_machine_detected', { reason: 'tone', ...evidence });
  // Without a greeting nothing stopped.
  return utterance === undefined
    ? toneStated(found, step)
    : greetingEndedByTone(found, utterance, step);
}

function verdictOn(utterance: Utterance | undefined, step: Step): Phase | undefined {
  if (utterance === undefined) return undefined;
  const verdict = decide(utterance, step.settings.thresholdWordCount);
  if (verdict === undefined) return undefined;
  const { who, reason, confidence } = verdict;
  const evidence = { reason, confidence, ...spoken(utterance) };
  if (who === 'human') {
    state(step, 'amd_human_detected', evidence);
    return { name: 'human', untilMs: step.elapsedMs + humanListenMs };
  }
  state(step, 'amd_machine_detected', evidence);
  return { name: 'greeting' };
}

function timersWhileDeciding(phase: Phase, utterance: Utterance | undefined, step: Step): Phase {
  const { timers } = step.settings;
  if (utterance === undefined && step.elapsedMs >= timers.noSpeechTimeoutMs) {
    state(step, 'amd_no_speech_detected', { reason: 'no-speech' });
    return stopped(step, 'no-speech');
  }
  if (step.elapsedMs >= timers.decisionTimeoutMs) {
    state(step, 'amd_decision_timeout', { reason: 'undecided', ...spoken(utterance) });
    return stopped(step, 'decision-timeout');
  }
  return phase;
}

function human(phase: Phase & { name: 'human' }, heard: Heard, step: Step): Phase {
  if (heard.found?.kind === 'beep') return toneStated(heard.found, step, 'amd_human_detected');
  return step.elapsedMs >= phase.untilMs ? stopped(step, 'human') : phase;
}

function greeting(phase: Phase, heard: Heard, step: Step): Phase {
  const { utterance, found } = heard;
  if (found?.kind === 'beep') return greetingEndedByTone(found, utterance, step);
  const pauseMs = utterance?.pauseMs ?? 0;
  const { greetingCompletionTimeoutMs } = step.settings.timers;
  if (!heard.tonePending && pauseMs >= greetingCompletionTimeoutMs) {
    state(step, 'amd_machine_stopped_speaking', { reason: 'silence', ...spoken(utterance) });
    return awaitingTone({ name: 'awaitingTone' }, heard, step);
  }
  return step.elapsedMs >= longestGreetingMs ? stopped(step, 'greeting-timeout') : phase;
}

function awaitingTone(phase: Phase, heard: Heard, step: Step): Phase {
  if (heard.found?.kind === 'beep') return toneStated(heard.found, step);
  const { toneTimeoutMs } = step.settings.timers;
  return step.elapsedMs >= toneTimeoutMs ? stopped(step, 'tone-timeout') : phase;
}

function greetingEndedByTone(
  found: ToneFound,
  utterance: Utterance | undefined,
  step: Step,
): Phase {
  state(step, 'amd_machine_stopped_speaking', { reason: 'tone', ...spoken(utterance) });
  return toneStated(found, step);
}

function toneStated(found: ToneFound, step: Step, corrects?: AmdEventName): Phase {
  // Over the time-out the search is off: a tone that nobody waits for any more is not stated.
  if (step.elapsedMs > step.settings.timers.toneTimeoutMs) return stopped(step, 'tone-timeout');
  state(step, 'amd_tone_detected', {
    reason: 'beep',
    tone: measured(found),
    ...(corrects === undefined ? {} : { corrects }),
  });
  return stopped(step, 'tone');
}

function stopped(step: Step, reason: string): Phase {
  state(step, 'amd_stopped', { reason });
  return { name: 'done' };
}

function state(step: Step, event: AmdEventName, evidence: Omit<AmdEvidence, 'elapsedMs'>): void {
  step.events.push({ event, elapsedMs: step.elapsedMs, ...evidence });
}

function measured(found: ToneFound): { readonly hz: number; readonly ms: number } {
  return { hz: found.hz, ms: found.ms };
}

function spoken(
  utterance: Utterance | undefined,
): Pick<AmdEvidence, 'words' | 'speechMs' | 'pauseMs'> {
  if (utterance === undefined) return {};
  const { words, speechMs, pauseMs } = utterance;
  return { words, speechMs, pauseMs };
}
