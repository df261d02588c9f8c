// A detector that works together with a recogniser. The recogniser's words replace the detector's
// own count, and a known phrase decides the verdict. The clock, the timers and the order of events
// are still up to the detector, so if the recogniser fails, the detector continues alone.

import type { AmdSettings, SpeechToTextSettings } from '../../calls/call-types.ts';
import type { HeardWords } from '../../calls/capture/capture.ts';
import type { AmdEvent, TranscriptionState } from '../../calls/detection/amd-event.ts';
import type { CreateDetector, Detector } from '../detector.ts';
import { type PhraseFinder, phraseFinder, warmUpPhraseFinders } from './phrase-finder.ts';
import { protocolFor } from './protocols.ts';
import type { SpeechToTextProviders } from './providers.ts';
import { type FailureReason, Recogniser } from './recogniser.ts';
import { createTranscript, type Transcript } from './transcript.ts';
import { keepsUp, type Transcription } from './transcription.ts';
import { createWordTimes } from './word-times.ts';
import { createWordCounter } from './words.ts';

export type SpeechToText = {
  readonly providers: SpeechToTextProviders;
  /** Used if a call names a provider that isn't configured on this gateway. */
  readonly defaultProvider?: string | undefined;
};

export type TranscriptionFailure = {
  readonly provider: string;
  readonly reason: FailureReason | 'unconfigured';
};

export type FailureReport = TranscriptionFailure & {
  /** Number of failures since the last report. This failure is included. */
  readonly failures: number;
};

export type TranscribedDetectorOptions = {
  readonly createDetector: CreateDetector;
  readonly speechToText: SpeechToText;
  /**
   * Reports failures for the log, at most once per `reportEveryMs`. (Clients see failures in the
   * call's events.) `unconfigured` is reported for every call, so the callback must remember which
   * provider names it has already logged.
   */
  readonly onFailed: (report: FailureReport) => void;
};

/**
 * While a provider is down, recognition fails for every call, so we limit the number of log lines.
 */
const reportEveryMs = 10_000;

const emptyTranscription: Transcription = { words: 0, heardUntilMs: 0 };

type CreateTranscribed = (
  settings: AmdSettings,
  /** Receives the words and their times once both are final. */
  onWords?: (words: readonly HeardWords[]) => void,
) => Detector;

export function createTranscribedDetector(options: TranscribedDetectorOptions): CreateTranscribed {
  const { createDetector, speechToText } = options;
  const onFailed = reportSometimes(options.onFailed);
  if (speechToText.providers.size > 0) {
    // ICU loads its tables on first use. That takes tens of milliseconds, which is too long during
    // calls.
    createWordCounter('en')('ready');
    warmUpPhraseFinders();
  }
  return (settings, onWords = () => undefined) => {
    const detector = createDetector(settings);
    if (settings.speechToText === undefined) return detector;
    const transcriber = openTranscriber(settings.speechToText, speechToText, {
      onTranscription: (transcription) => detector.understand(transcription),
      onFailed,
      onWords,
    });
    return transcribed(detector, transcriber);
  };
}

function reportSometimes(report: (report: FailureReport) => void) {
  let failures = 0;
  let nextMs = 0;
  return (failure: TranscriptionFailure): void => {
    if (failure.reason === 'unconfigured') {
      report({ ...failure, failures: 1 });
      return;
    }
    failures += 1;
    const nowMs = performance.now();
    if (nowMs < nextMs) return;
    nextMs = nowMs + reportEveryMs;
    report({ ...failure, failures });
    failures = 0;
  };
}

function transcribed(detector: Detector, transcriber: Transcriber): Detector {
  function said(events: readonly AmdEvent[]): readonly AmdEvent[] {
    if (events.length === 0) return events;
    const labelled = events.map((event) => label(event, transcriber));
    // After the verdict "human" there's nothing left to recognise, and we shouldn't listen to the
    // person's private conversation.
    const isPerson = events.some(({ event }) => event === 'amd_human_detected');
    if (isPerson || detector.done) transcriber.close();
    // The voice after a greeting (e.g. a person after call screening) starts a new transcript.
    if (events.some(({ event }) => event === 'amd_machine_stopped_speaking')) transcriber.begin();
    return labelled;
  }

  return {
    get done() {
      return detector.done;
    },
    get ear() {
      return detector.ear;
    },
    push(frame, lost, sentPower, heard = frame, unheardMs = 0) {
      transcriber.push(heard);
      try {
        return said(detector.push(frame, lost, sentPower, heard, unheardMs));
      } catch (error) {
        transcriber.close();
        throw error;
      }
    },
    understand(transcription) {
      detector.understand(transcription);
    },
    stop(reason) {
      const events = said(detector.stop(reason));
      transcriber.close();
      return events;
    },
  };
}

type Transcriber = {
  push(frame: Int16Array): void;
  /** Undefined as long as recognition works. Once set, this never changes. */
  readonly broken: 'failed' | 'unconfigured' | undefined;
  readonly transcription: Transcription;
  readonly text: string;
  /** Forgets what has been said so far. */
  begin(): void;
  close(): void;
};

type TranscriptionSink = {
  onTranscription(transcription: Transcription): void;
  onFailed(failure: TranscriptionFailure): void;
  onWords(words: readonly HeardWords[]): void;
};

function openTranscriber(
  settings: SpeechToTextSettings,
  { providers, defaultProvider = '' }: SpeechToText,
  sink: TranscriptionSink,
): Transcriber {
  const { sttProvider: asked, sttLanguage: language, interim } = settings;
  const name = providers.has(asked) ? asked : defaultProvider;
  const provider = providers.get(name);
  if (provider === undefined) {
    sink.onFailed({ provider: asked, reason: 'unconfigured' });
    return brokenTranscriber('unconfigured');
  }
  const countWords = createWordCounter(language);
  const findPhrase = phraseFinder(language);
  let transcript: Transcript = createTranscript();
  let transcription = emptyTranscription;
  let broken: 'failed' | undefined;
  const times = createWordTimes((words) => sink.onWords(words));
  function begin(): void {
    times.end();
    transcript = createTranscript();
    transcription = emptyTranscription;
    sink.onTranscription(transcription);
  }
  const recogniser = new Recogniser(protocolFor(provider, settings), countWords, {
    onSaid(said, sentMs) {
      if (interim === false && !said.isFinal) return;
      transcript.hear(said, sentMs);
      times.hear(said, transcript.heardUntilMs);
      transcription = understand(transcript, countWords, findPhrase);
      sink.onTranscription(transcription);
    },
    onFailed(reason) {
      broken = 'failed';
      // Discard the results that the failed provider has sent so far.
      begin();
      sink.onFailed({ provider: name, reason });
    },
  });
  return {
    push: (frame) => recogniser.push(frame),
    get broken() {
      return broken;
    },
    get transcription() {
      return transcription;
    },
    get text() {
      return transcript.text;
    },
    begin,
    close() {
      times.end();
      recogniser.close();
    },
  };
}

function brokenTranscriber(broken: 'unconfigured'): Transcriber {
  return {
    push: () => undefined,
    broken,
    transcription: emptyTranscription,
    text: '',
    begin: () => undefined,
    close: () => undefined,
  };
}

function understand(
  transcript: Transcript,
  countWords: (text: string) => number,
  findPhrase: PhraseFinder,
): Transcription {
  const { text, heardUntilMs } = transcript;
  const phrase = findPhrase.settling(text);
  return {
    words: countWords(text),
    heardUntilMs,
    asksForHelp: findPhrase.asksForHelp(text),
    ...(phrase === undefined ? {} : { phrase }),
  };
}

const restsOnWords: ReadonlySet<AmdEvent['event']> = new Set([
  'amd_human_detected',
  'amd_machine_detected',
  'amd_decision_timeout',
]);

/**
 * Adds the transcript to an event, and records whether we used the recogniser's words. If the
 * detector had to use its own count instead, the reason says so too.
 */
function label(event: AmdEvent, transcriber: Transcriber): AmdEvent {
  const { broken, text } = transcriber;
  const understands = restsOnWords.has(event.event);
  const quoted =
    text !== '' && (understands || event.event === 'amd_machine_stopped_speaking')
      ? { transcript: text }
      : {};
  // Tone events don't depend on words.
  if (!understands || event.tone !== undefined) {
    return { ...event, ...quoted, ...(broken === undefined ? {} : { transcription: broken }) };
  }
  const state = stateAt(event, transcriber);
  const reason = state === 'used' ? event.reason : `${event.reason}-transcription-${state}`;
  return { ...event, ...quoted, reason, transcription: state };
}

function stateAt(event: AmdEvent, { broken, transcription }: Transcriber): TranscriptionState {
  if (broken !== undefined) return broken;
  if (event.reason === transcription.phrase) return 'used';
  return keepsUp(transcription, event.elapsedMs, event.pauseMs ?? 0) ? 'used' : 'late';
}
