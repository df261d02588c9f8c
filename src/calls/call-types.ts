// The words of the domain: what a call is, what was asked for, and what can be said of it. No I/O.

import type { CallIdentity } from './contract/identity.ts';
import type { SelectedEventType } from './contract/notify-events.ts';
import type { AmdEventName } from './detection/amd-event.ts';
import type { RequestedScreening, RequestedVoicemail } from './plans/plans.ts';
import type { RequestedStream } from './stream/stream.ts';
import type { DialTarget } from './target/dial-target.ts';
import type { TransferPlan } from './transfer/transfer.ts';

export type { DialTarget } from './target/dial-target.ts';

export const machineDetectionModes = ['disconnect', 'detect', 'disabled'] as const;
export type MachineDetectionMode = (typeof machineDetectionModes)[number];

/** Detection timers, milliseconds of the sample clock that starts with the 200 OK. */
export type AmdTimers = {
  readonly noSpeechTimeoutMs: number;
  readonly decisionTimeoutMs: number;
  readonly toneTimeoutMs: number;
  readonly greetingCompletionTimeoutMs: number;
};

export const defaultAmdTimers: AmdTimers = {
  noSpeechTimeoutMs: 5_000,
  decisionTimeoutMs: 15_000,
  toneTimeoutMs: 20_000,
  greetingCompletionTimeoutMs: 2_000,
};

export type AmdSettings = {
  readonly timers: AmdTimers;
  /** A strict rule when given: this many words make a machine. */
  readonly thresholdWordCount?: number;
  /**
   * A message is to be left: the tone is searched until the machine has been silent for so long, in place of `toneTimeoutMs`
   * from the answer.
   */
  readonly waitForBeepMs?: number;
  /** A recogniser's second opinion, where the request names a provider. */
  readonly speechToText?: SpeechToTextSettings;
};

/** Speech-to-text of one call, in the words of a dial-out request (`callControlParameter`). */
export type SpeechToTextSettings = {
  readonly sttProvider: string;
  readonly sttLanguage: string;
  readonly interim?: boolean;
  readonly sttLabel?: string;
  readonly continuousASRTimeoutInMS?: number;
  readonly sttVendorUtteranceEndMs?: number;
  readonly sttVendorEndpointing?: number;
};

/** A dial-out request after validation, in canonical spelling. Kept with the call. No secrets: `notifyHeaders` stay apart. */
export type DialoutRequest = {
  readonly target: DialTarget;
  /** User part of the caller ID. */
  readonly caller: string;
  readonly notifyUrl?: string;
  readonly ringTimeoutMs: number;
  /** Not dialled any more when it has waited for so long. */
  readonly queueTimeoutMs: number;
  /** From the answer to the hang-up. The limit of the gateway holds in any case. */
  readonly maxDurationMs?: number;
  /** Name of a trunk; left out for a `sip:` target that is dialled directly. Filled in with the default for `tel:`. */
  readonly trunk?: string;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly machineDetection: MachineDetectionMode;
  readonly amd: AmdSettings;
  /** Of the request, or else of its bot; left out: the person hears silence. */
  readonly stream?: RequestedStream;
  /** Of a call with `detect` only. */
  readonly voicemail?: RequestedVoicemail;
  readonly screening?: RequestedScreening;
  /** Whom the person is to be connected to. */
  readonly bridge?: TransferPlan;
  /** Left out: all AMD events are notified. Empty: none. */
  readonly amdEventsSubscription?: readonly AmdEventName[];
  /** Types of events that are notified with status `Event`; left out where the request selects no event. */
  readonly notifyEvents?: readonly SelectedEventType[];
  /** W3C Trace Context: of the span that took the request in, or what came with it where nothing is traced here. */
  readonly traceparent?: string;
  /** Only beside a `traceparent`: what the systems before have added to it. */
  readonly tracestate?: string;
};

/** A call that was accepted: the machine's input, and what a worker reads from SQL before it dials. */
export type AcceptedCall = CallIdentity & {
  readonly request: DialoutRequest;
  readonly acceptedAt: Date;
};

/** Makes a forgotten case of a union a compile error, and a loud one at run time. */
export function assertNever(value: never): never {
  throw new Error(`unexpected case: ${JSON.stringify(value)}`);
}
