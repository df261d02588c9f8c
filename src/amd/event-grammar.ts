// The only place that emits AMD events, which guarantees this order:
//   ( human [tone]
//   | [machine] [stopped_speaking] [tone]
//   | no_speech | decision_timeout | error
//   ) stopped
// `stopped_speaking` and `tone` never occur without a verdict. The timers live here too. They
// advance with each frame.

import type { AmdSettings } from '../calls/call-types.ts';
import type { AmdEvent, AmdEventName, AmdEvidence } from '../calls/detection/amd-event.ts';
import { type Answerer, BeepBelief } from './beep-belief.ts';
import { frameMs } from './frame.ts';
import { type SettlingPhrase, type Transcription, withSecondOpinion } from './stt/transcription.ts';
import type { ToneFound } from './tones/tone-detector.ts';
import { decide, isHello } from './verdict.ts';
import type { Utterance } from './voice/utterance.ts';

/**
 * A beep within this time corrects the verdict "human". If speech follows that verdict, detection
 * listens even longer (`beepWithinMs`).
 */
const humanListenMs = 5_000;
/**
 * A person doesn't say more than this to a silent caller: "Hello? Who is this?" Anyone who keeps
 * talking after the verdict sounds like a recording.
 */
const recordingMs = 1_000;
/**
 * A mailbox beeps within this time after its last word. Here we count from the last word since the
 * verdict.
 */
const beepWithinMs = 3_500;
/**
 * How long we wait for a greeting to end, counted from the answer. Even the longest announcements
 * are shorter. If the call is going to leave a message, this bounds the wait for the beep too.
 */
const maxGreetingMs = 60_000;
const toneConfidence = 0.95;
const phraseConfidence = 0.95;
const machineToneReasons: Readonly<Record<ToneFound['kind'], string>> = {
  beep: 'tone',
  fax: 'fax-tone',
  sit: 'sit-tone',
  signalling: 'tone',
};

/** What we heard in one frame. The object is reused: its fields change with every frame. */
export type Heard = {
  readonly utterance: Utterance | undefined;
  readonly found: ToneFound | undefined;
  /**
   * There's a tone that we haven't classified yet. Until we have, silence doesn't lead to a
   * verdict.
   */
  readonly tonePending: boolean;
  /** Pitch of the current tone if it's steady, otherwise 0. */
  readonly toneHz: number;
  /** A tone that will most likely become `found` two frames later. */
  readonly ending: ToneFound | undefined;
};

/**
 * What the phases see. `found` contains a beep only if we believe it. The object is reused for
 * every frame.
 */
type Believed = { -readonly [Member in 'utterance' | 'found' | 'tonePending']: Heard[Member] };

type Phase =
  | { readonly name: 'deciding' }
  | {
      readonly name: 'human';
      readonly untilMs: number;
      readonly speechMs: number;
      readonly saidHello: boolean;
    }
  /**
   * A machine is speaking, or is about to. If `screened` is set, the machine is a call screener
   * that asked who is calling.
   */
  | { readonly name: 'greeting'; readonly screened: boolean }
  | { readonly name: 'awaitingTone' }
  /**
   * The screener has finished its question. We judge the next voice afresh, but can't emit a second
   * verdict.
   */
  | { readonly name: 'screened' }
  | { readonly name: 'done' };

const noEvents: readonly AmdEvent[] = [];

/**
 * Input for the phase functions, and where they add their events. The object is reused for every
 * frame.
 */
type Step = {
  readonly settings: AmdSettings;
  /** Forgets what was said so far, because someone else speaks next. */
  readonly rearm: () => void;
  elapsedMs: number;
  events: readonly AmdEvent[];
};

export class EventGrammar {
  readonly #step: Step;
  #phase: Phase = { name: 'deciding' };
  #transcription: Transcription | undefined;
  readonly #belief = new BeepBelief();
  /**
   * The last frame, which contains a beep only if we believe it. The object is reused for every
   * frame.
   */
  readonly believed: Believed = { utterance: undefined, found: undefined, tonePending: false };

  constructor(settings: AmdSettings, rearm: () => void = () => undefined) {
    this.#step = { settings, rearm, elapsedMs: 0, events: noEvents };
  }

  get done(): boolean {
    return this.#phase.name === 'done';
  }

  /**
   * Processes the next frame and returns its events. After `done` there are no more events, but
   * `believed` is still updated.
   */
  advance(heard: Heard): readonly AmdEvent[] {
    const phase = this.#phase;
    const step = this.#step;
    const { believed } = this;
    step.elapsedMs += frameMs;
    const speaks = heard.utterance?.pauseMs === 0;
    const answerer = answererOf(phase, heard);
    believed.found = this.#belief.take(heard.found, heard.toneHz, speaks, answerer);
    believed.tonePending =
      this.#belief.waiting || (heard.tonePending && !this.#belief.isRejected(heard.toneHz));
    if (phase.name === 'done') return noEvents;
    const { utterance, phrase } = withSecondOpinion(
      heard.utterance,
      this.#transcription,
      step.elapsedMs,
    );
    believed.utterance = utterance;
    return this.#enter(react(phase, believed, phrase, step));
  }

  /** Returns true if the tone that is ending will be accepted as a beep as soon as it's found. */
  expectsBeep(heard: Heard): boolean {
    if (heard.ending === undefined) return false;
    return this.#belief.isSure(heard.ending, answererOf(this.#phase, heard));
  }

  /** Passes on a recogniser's words, which count from the next frame on. */
  understand(latest: Transcription): void {
    this.#transcription = latest;
  }

  fail(): readonly AmdEvent[] {
    if (this.done) return noEvents;
    // An earlier verdict stands.
    if (this.#phase.name === 'deciding')
      emit(this.#step, 'amd_error', { reason: 'detector-failed' });
    return this.#enter(stopped(this.#step, 'error'));
  }

  stop(reason: string): readonly AmdEvent[] {
    return this.done ? noEvents : this.#enter(stopped(this.#step, reason));
  }

  #enter(next: Phase): readonly AmdEvent[] {
    this.#phase = next;
    const { events } = this.#step;
    this.#step.events = noEvents;
    return events;
  }
}

function react(
  phase: Phase,
  heard: Believed,
  phrase: SettlingPhrase | undefined,
  step: Step,
): Phase {
  switch (phase.name) {
    case 'deciding':
      return deciding(phase, heard, phrase, step);
    case 'human':
      return human(phase, heard, step);
    case 'greeting':
      return greeting(phase, heard, step);
    case 'awaitingTone':
      return awaitingTone(phase, heard, step);
    case 'screened':
      return screened(phase, heard, step);
    case 'done':
      return phase;
  }
}

function deciding(
  phase: Phase,
  heard: Believed,
  phrase: SettlingPhrase | undefined,
  step: Step,
): Phase {
  const { utterance, found } = heard;
  if (found !== undefined && found.kind !== 'signalling')
    return machineTone(found, utterance, step);
  if (phrase !== undefined) {
    const confidence = phraseConfidence;
    emit(step, 'amd_machine_detected', { reason: phrase, confidence, ...spoken(utterance) });
    return { name: 'greeting', screened: phrase === 'call-screening' };
  }
  const verdict = heard.tonePending ? undefined : verdictOn(utterance, step);
  return verdict ?? timersWhileDeciding(phase, utterance, step);
}

/**
 * Handles tones that people don't make: a fax, the three tones before a network announcement, or a
 * beep.
 */
function machineTone(found: ToneFound, utterance: Utterance | undefined, step: Step): Phase {
  const reason = machineToneReasons[found.kind];
  const evidence = { confidence: toneConfidence, tone: measured(found), ...spoken(utterance) };
  emit(step, 'amd_machine_detected', { reason, ...evidence });
  if (found.kind === 'fax') return stopped(step, 'fax-tone');
  if (found.kind === 'sit') return { name: 'greeting', screened: false };
  // Without a greeting, there is no `stopped_speaking`.
  return utterance === undefined
    ? emitTone(found, utterance, step)
    : greetingEndedByTone(found, utterance, step);
}

function verdictOn(utterance: Utterance | undefined, step: Step): Phase | undefined {
  if (utterance === undefined) return undefined;
  const verdict = decide(utterance, step.settings.thresholdWordCount);
  if (verdict === undefined) return undefined;
  const { who, reason, confidence } = verdict;
  const evidence = { reason, confidence, ...spoken(utterance) };
  if (who === 'human') {
    emit(step, 'amd_human_detected', evidence);
    const untilMs = step.elapsedMs + humanListenMs;
    const saidHello = isHello(utterance);
    return { name: 'human', untilMs, speechMs: utterance.speechMs, saidHello };
  }
  emit(step, 'amd_machine_detected', evidence);
  return { name: 'greeting', screened: false };
}

function timersWhileDeciding(phase: Phase, utterance: Utterance | undefined, step: Step): Phase {
  const { timers } = step.settings;
  if (utterance === undefined && step.elapsedMs >= timers.noSpeechTimeoutMs) {
    emit(step, 'amd_no_speech_detected', { reason: 'no-speech' });
    return stopped(step, 'no-speech');
  }
  if (step.elapsedMs >= timers.decisionTimeoutMs) {
    emit(step, 'amd_decision_timeout', { reason: 'undecided', ...spoken(utterance) });
    return stopped(step, 'decision-timeout');
  }
  return phase;
}

function human(phase: Phase & { name: 'human' }, heard: Believed, step: Step): Phase {
  const { toneTimeoutMs } = step.settings.timers;
  if (step.elapsedMs <= toneTimeoutMs && heard.found?.kind === 'beep') {
    return emitTone(heard.found, heard.utterance, step, 'amd_human_detected');
  }
  if (step.elapsedMs < phase.untilMs) return phase;
  const listens = step.elapsedMs < toneTimeoutMs && mayStillBeep(phase.speechMs, heard);
  return listens ? phase : stopped(step, 'human');
}

/**
 * Returns true while a greeting may still end with a beep. A recorded greeting that merely paused
 * after its "Hi." goes on at length, whether or not the caller answers.
 */
function mayStillBeep(speechBeforeMs: number, { utterance, tonePending }: Believed): boolean {
  if (tonePending) return true;
  return saidSinceMs(speechBeforeMs, utterance) > 0 && (utterance?.pauseMs ?? 0) < beepWithinMs;
}

function saidSinceMs(speechBeforeMs: number, utterance: Utterance | undefined): number {
  const { speechMs } = utterance ?? { speechMs: 0 };
  // If there's less speech than before, a louder voice has replaced the first one.
  return speechMs < speechBeforeMs ? speechMs : speechMs - speechBeforeMs;
}

/**
 * Returns who picked up. It tells us whether a beep is more likely a mailbox or an appliance in
 * someone's room.
 */
function answererOf(phase: Phase, { utterance }: Heard): Answerer {
  switch (phase.name) {
    case 'greeting':
    case 'awaitingTone':
    // The call is leaving a message, or is about to.
    case 'done':
      return 'machine';
    case 'human': {
      if (saidSinceMs(phase.speechMs, utterance) >= recordingMs) return 'undecided';
      return phase.saidHello ? 'hello' : 'person';
    }
    case 'deciding':
    case 'screened':
      if (utterance === undefined) return 'silence';
      return isHello(utterance) ? 'hello' : 'undecided';
  }
}

function greeting(phase: Phase & { name: 'greeting' }, heard: Believed, step: Step): Phase {
  const { utterance, found } = heard;
  if (found?.kind === 'beep') {
    return utterance === undefined
      ? emitTone(found, utterance, step)
      : greetingEndedByTone(found, utterance, step);
  }
  // We heard the network's three tones, but no announcement after them.
  if (utterance === undefined) return awaitingTone(phase, heard, step);
  const { greetingCompletionTimeoutMs } = step.settings.timers;
  if (!heard.tonePending && utterance.pauseMs >= greetingCompletionTimeoutMs) {
    emit(step, 'amd_machine_stopped_speaking', { reason: 'silence', ...spoken(utterance) });
    if (!phase.screened) return awaitingTone({ name: 'awaitingTone' }, heard, step);
    step.rearm();
    return { name: 'screened' };
  }
  return step.elapsedMs >= maxGreetingMs ? stopped(step, 'greeting-timeout') : phase;
}

function awaitingTone(phase: Phase, heard: Believed, step: Step): Phase {
  if (heard.found?.kind === 'beep') return emitTone(heard.found, heard.utterance, step);
  return hasWaitedForTone(heard, step) ? stopped(step, 'tone-timeout') : phase;
}

function hasWaitedForTone({ utterance, tonePending }: Believed, step: Step): boolean {
  const { waitForBeepMs } = step.settings;
  if (step.elapsedMs >= toneLimitMs(step)) return true;
  // A greeting that continues restarts the wait.
  return waitForBeepMs !== undefined && !tonePending && (utterance?.pauseMs ?? 0) >= waitForBeepMs;
}

function toneLimitMs({ settings }: Step): number {
  return settings.waitForBeepMs === undefined ? settings.timers.toneTimeoutMs : maxGreetingMs;
}

/**
 * Waits for the voice after a call screener's question. The assistant may put a person through,
 * take a message, or hang up. The verdict "machine" can't change any more, so we report who spoke
 * next in the reason for `amd_stopped`. A mailbox's beep is reported as usual.
 */
function screened(phase: Phase, heard: Believed, step: Step): Phase {
  const { utterance, found } = heard;
  const searching = step.elapsedMs <= step.settings.timers.toneTimeoutMs;
  if (searching && found?.kind === 'beep') return emitTone(found, utterance, step);
  const verdict =
    utterance === undefined || heard.tonePending ? undefined : decide(utterance, undefined);
  if (verdict?.who === 'human') return stopped(step, 'human-after-screening', utterance);
  if (verdict?.who === 'machine') return stopped(step, 'machine-after-screening', utterance);
  return step.elapsedMs >= maxGreetingMs ? stopped(step, 'nobody-after-screening') : phase;
}

function greetingEndedByTone(found: ToneFound, utterance: Utterance, step: Step): Phase {
  emit(step, 'amd_machine_stopped_speaking', { reason: 'tone', ...spoken(utterance) });
  return emitTone(found, utterance, step);
}

function emitTone(
  found: ToneFound,
  utterance: Utterance | undefined,
  step: Step,
  corrects?: AmdEventName,
): Phase {
  // The search for a beep has timed out, so we don't report this one.
  if (step.elapsedMs > toneLimitMs(step)) return stopped(step, 'tone-timeout');
  emit(step, 'amd_tone_detected', {
    reason: 'beep',
    confidence: toneConfidence,
    tone: measured(found),
    ...spoken(utterance),
    ...(corrects === undefined ? {} : { corrects }),
  });
  return stopped(step, 'tone');
}

function stopped(step: Step, reason: string, utterance?: Utterance): Phase {
  emit(step, 'amd_stopped', { reason, ...spoken(utterance) });
  return { name: 'done' };
}

function emit(step: Step, event: AmdEventName, evidence: Omit<AmdEvidence, 'elapsedMs'>): void {
  step.events = [...step.events, { event, elapsedMs: step.elapsedMs, ...evidence }];
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
