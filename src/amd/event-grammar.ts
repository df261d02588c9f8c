// AMD events are only emitted here, which guarantees this order:
//   ( human [tone]
//   | [machine] [stopped_speaking] [tone]
//   | no_speech | decision_timeout | error
//   ) stopped
// `stopped_speaking` and `tone` never occur without a verdict. The timers, which advance with each
// frame, are here too.

import type { AmdSettings } from '../calls/call-types.ts';
import type { AmdEvent, AmdEventName, AmdEvidence } from '../calls/detection/amd-event.ts';
import type { AmdReason, DetectionStop, VerdictReason } from '../calls/detection/amd-reasons.ts';
import { type Answerer, BeepBelief } from './beep-belief.ts';
import { frameMs } from './frame.ts';
import { type SettlingPhrase, type Transcription, withSecondOpinion } from './stt/transcription.ts';
import type { ToneFound } from './tones/tone-detector.ts';
import { Unheard } from './unheard.ts';
import { decide, isHello, type Verdict, type VerdictSettings } from './verdict.ts';
import type { Utterance } from './voice/utterance.ts';

/**
 * A beep within this time corrects the verdict "human". If more speech follows the verdict,
 * detection continues to listen for even longer (`beepWithinMs`).
 */
const humanListenMs = 5_000;
/**
 * A person who answers and hears nothing doesn't say more than this: "Hello? Who is this?" Anyone
 * who continues to talk after the verdict sounds like a recording.
 */
const recordingMs = 1_000;
/**
 * A mailbox beeps within this time after its last word, which here means the last word since the
 * verdict.
 */
const beepWithinMs = 3_500;
/**
 * We wait this long for a greeting to end, counted from the answer. Even the longest announcements
 * are shorter. If the call is going to leave a message, we don't wait longer than this for the beep
 * either.
 */
const maxGreetingMs = 60_000;
/**
 * If too much went unheard, a time-out waits for twice its length at most. After that, detection
 * has failed.
 */
const timesPostponed = 2;
/** The words that a threshold counts are those of the first voice. */
const afterScreening: VerdictSettings = {};
const toneConfidence = 0.95;
const phraseConfidence = 0.95;
const machineToneReasons: Readonly<Record<ToneFound['kind'], VerdictReason>> = {
  beep: 'tone',
  fax: 'fax-tone',
  sit: 'sit-tone',
  signalling: 'tone',
};

/** What we heard in one frame. The same object is filled again for every frame. */
export type Heard = {
  readonly utterance: Utterance | undefined;
  readonly found: ToneFound | undefined;
  /**
   * There's a tone that we haven't classified yet. As long as we haven't, silence doesn't lead to a
   * verdict.
   */
  readonly tonePending: boolean;
  /** Pitch of the current tone, or 0 if there isn't a steady one. */
  readonly toneHz: number;
  /** A tone that we'll most likely report as `found` two frames later. */
  readonly ending: ToneFound | undefined;
};

/**
 * The input for the phases. `found` only contains a beep that we've accepted. The object is reused
 * for every frame.
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
   * A machine is speaking, or is about to speak. `screened` means that this machine is a call
   * screener that has asked who is calling.
   */
  | { readonly name: 'greeting'; readonly screened: boolean }
  | { readonly name: 'awaitingTone' }
  /**
   * The screener has finished its question. We judge the next voice from scratch, but can't emit a
   * second verdict.
   */
  | { readonly name: 'screened' }
  | { readonly name: 'done' };

const noEvents: readonly AmdEvent[] = [];

/**
 * Input and output of the phase functions, which add their events here. The object is reused for
 * every frame.
 */
type Step = {
  readonly settings: AmdSettings;
  /** Forgets what has been said so far, because somebody else is going to speak next. */
  readonly rearm: () => void;
  readonly unheard: Unheard;
  elapsedMs: number;
  events: readonly AmdEvent[];
};

export class EventGrammar {
  readonly #step: Step;
  #phase: Phase = { name: 'deciding' };
  #transcription: Transcription | undefined;
  readonly #belief = new BeepBelief();
  /**
   * The last frame. If it contains a beep, we've accepted that beep. The object is reused for every
   * frame.
   */
  readonly believed: Believed = { utterance: undefined, found: undefined, tonePending: false };

  constructor(settings: AmdSettings, rearm: () => void = () => undefined) {
    this.#step = { settings, rearm, unheard: new Unheard(), elapsedMs: 0, events: noEvents };
  }

  get done(): boolean {
    return this.#phase.name === 'done';
  }

  /**
   * Processes the next frame and returns its events. There are no more events after `done`, but
   * `believed` is still updated. `unheardMs` is the audio that we didn't hear in time.
   */
  advance(heard: Heard, unheardMs = 0): readonly AmdEvent[] {
    const phase = this.#phase;
    const step = this.#step;
    const { believed } = this;
    step.elapsedMs += frameMs;
    step.unheard.add(unheardMs, heard.utterance);
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

  /**
   * Returns true if the tone that's just ending will be accepted as a beep as soon as it's found.
   */
  expectsBeep(heard: Heard): boolean {
    if (heard.ending === undefined) return false;
    return this.#belief.isSure(heard.ending, answererOf(this.#phase, heard));
  }

  /** Passes on a recogniser's words, which we use from the next frame on. */
  understand(latest: Transcription): void {
    this.#transcription = latest;
  }

  fail(): readonly AmdEvent[] {
    if (this.done) return noEvents;
    // There's already a verdict, which remains valid.
    if (this.#phase.name === 'deciding')
      emit(this.#step, 'amd_error', { reason: 'detector-failed' });
    return this.#enter(stopped(this.#step, 'error'));
  }

  stop(reason: DetectionStop): readonly AmdEvent[] {
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
 * Handles tones that people can't make: a fax, the three tones before a network announcement, or a
 * beep.
 */
function machineTone(found: ToneFound, utterance: Utterance | undefined, step: Step): Phase {
  const reason = machineToneReasons[found.kind];
  const evidence = { confidence: toneConfidence, tone: measured(found), ...spoken(utterance) };
  emit(step, 'amd_machine_detected', { reason, ...evidence });
  if (found.kind === 'fax') return stopped(step, 'fax-tone');
  if (found.kind === 'sit') return { name: 'greeting', screened: false };
  // There wasn't a greeting, so we don't emit `stopped_speaking`.
  return utterance === undefined
    ? emitTone(found, utterance, step)
    : greetingEndedByTone(found, utterance, step);
}

function verdictOn(utterance: Utterance | undefined, step: Step): Phase | undefined {
  if (utterance === undefined) return undefined;
  const verdict = heardVerdict(utterance, step.settings, step);
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

/** Returns the verdict, unless it rests on silence of which too much went unheard. */
function heardVerdict(
  utterance: Utterance,
  settings: VerdictSettings,
  step: Step,
): Verdict | undefined {
  const verdict = decide(utterance, settings);
  return verdict?.who === 'human' && step.unheard.makesSilenceDoubtful ? undefined : verdict;
}

function timersWhileDeciding(phase: Phase, utterance: Utterance | undefined, step: Step): Phase {
  const { noSpeechTimeoutMs, decisionTimeoutMs } = step.settings.timers;
  const isSilent = utterance === undefined && step.elapsedMs >= noSpeechTimeoutMs;
  const isOver = step.elapsedMs >= decisionTimeoutMs;
  if (!isSilent && !isOver) return phase;
  if (step.unheard.makesSilenceDoubtful) {
    const timeoutMs = isSilent ? noSpeechTimeoutMs : decisionTimeoutMs;
    if (step.elapsedMs < (1 + timesPostponed) * timeoutMs) return phase;
    emit(step, 'amd_error', { reason: 'audio-unheard', ...spoken(utterance) });
    return stopped(step, 'error');
  }
  if (isSilent) {
    emit(step, 'amd_no_speech_detected', { reason: 'no-speech' });
    return stopped(step, 'no-speech');
  }
  emit(step, 'amd_decision_timeout', { reason: 'undecided', ...spoken(utterance) });
  return stopped(step, 'decision-timeout');
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
 * Returns true while a beep may still follow the greeting. A recorded greeting that has only paused
 * after "Hi." is going to continue for a long time, whether or not the caller says anything.
 */
function mayStillBeep(speechBeforeMs: number, { utterance, tonePending }: Believed): boolean {
  if (tonePending) return true;
  return saidSinceMs(speechBeforeMs, utterance) > 0 && (utterance?.pauseMs ?? 0) < beepWithinMs;
}

function saidSinceMs(speechBeforeMs: number, utterance: Utterance | undefined): number {
  const { speechMs } = utterance ?? { speechMs: 0 };
  // If there's less speech than before, the first voice has been replaced by a louder one.
  return speechMs < speechBeforeMs ? speechMs : speechMs - speechBeforeMs;
}

/**
 * Returns who picked up, which tells us whether a beep is more likely to come from a mailbox or
 * from an appliance in somebody's room.
 */
function answererOf(phase: Phase, { utterance }: Heard): Answerer {
  switch (phase.name) {
    case 'greeting':
    case 'awaitingTone':
    // The call is leaving a message, or is about to leave one.
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
  // We heard the network's three tones, but no announcement followed.
  if (utterance === undefined) return awaitingTone(phase, heard, step);
  const { greetingCompletionTimeoutMs } = step.settings.timers;
  const isSilent = utterance.pauseMs >= greetingCompletionTimeoutMs;
  if (!heard.tonePending && isSilent && !step.unheard.makesSilenceDoubtful) {
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
  // The greeting has continued, so the wait starts again.
  return waitForBeepMs !== undefined && !tonePending && (utterance?.pauseMs ?? 0) >= waitForBeepMs;
}

function toneLimitMs({ settings }: Step): number {
  return settings.waitForBeepMs === undefined ? settings.timers.toneTimeoutMs : maxGreetingMs;
}

/**
 * Waits for the voice after a call screener's question. The assistant may put us through to a
 * person, take a message, or hang up. We can't change the verdict "machine" any more, so the reason
 * in `amd_stopped` says who spoke next. We report a mailbox's beep as usual.
 */
function screened(phase: Phase, heard: Believed, step: Step): Phase {
  const { utterance, found } = heard;
  const searching = step.elapsedMs <= step.settings.timers.toneTimeoutMs;
  if (searching && found?.kind === 'beep') return emitTone(found, utterance, step);
  const verdict =
    utterance === undefined || heard.tonePending
      ? undefined
      : heardVerdict(utterance, afterScreening, step);
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
  // The search for a beep has timed out, so we don't report this beep.
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

function stopped(step: Step, reason: DetectionStop, utterance?: Utterance): Phase {
  emit(step, 'amd_stopped', { reason, ...spoken(utterance) });
  return { name: 'done' };
}

type Evidence = Omit<AmdEvidence, 'elapsedMs' | 'reason'> & { readonly reason: AmdReason };

function emit(step: Step, event: AmdEventName, evidence: Evidence): void {
  const { elapsedMs, unheard } = step;
  const unheardMs = Math.round(unheard.totalMs);
  const missed = unheardMs === 0 ? {} : { unheardMs };
  step.events = [...step.events, { event, elapsedMs, ...evidence, ...missed }];
}

function measured(found: ToneFound): { readonly hz: number; readonly ms: number } {
  return { hz: found.hz, ms: found.ms };
}

function spoken(
  utterance: Utterance | undefined,
): Pick<AmdEvidence, 'words' | 'speechMs' | 'pauseMs' | 'spanMs'> {
  if (utterance === undefined) return {};
  const { words, speechMs, pauseMs, spanMs } = utterance;
  return { words, speechMs, pauseMs, spanMs };
}
