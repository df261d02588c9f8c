// The basic types of the domain: an accepted call and a validated dial-out request. No I/O.

import type { CallerDetails } from './caller/caller-members.ts';
import type { CallIdentity } from './contract/identity.ts';
import type { SelectedEventType } from './contract/notify-events.ts';
import type { AmdEventName } from './detection/amd-event.ts';
import type { RequestedScreening, RequestedVoicemail } from './plans/plans.ts';
import type { RequestedRecording } from './recording/recording.ts';
import type { Consent } from './rules/consent.ts';
import type { Ruling } from './rules/ruling.ts';
import type { RequestedStream } from './stream/stream.ts';
import type { DialTarget } from './target/dial-target.ts';
import type { TransferPlan } from './transfer/transfer.ts';

export type { DialTarget } from './target/dial-target.ts';

export const machineDetectionModes = ['disconnect', 'detect', 'disabled'] as const;
export type MachineDetectionMode = (typeof machineDetectionModes)[number];

/** Detection timers in milliseconds. They run on the sample clock, which starts at the 200 OK. */
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
  /** If set, a greeting with at least this many words is taken for a machine's. */
  readonly thresholdWordCount?: number;
  /** Set if the request asks for `careful` detection: the verdict "human" needs this silence. */
  readonly personAfterSilenceMs?: number;
  /**
   * Set if the call should leave a message. In that case, the search for the tone ends once the
   * machine has been silent for this long, rather than `toneTimeoutMs` after the answer.
   */
  readonly waitForBeepMs?: number;
  /** Set if the request names a speech-to-text provider. */
  readonly speechToText?: SpeechToTextSettings;
};

/**
 * A call's speech-to-text settings. The names are those of the dial-out request
 * (`callControlParameter`).
 */
export type SpeechToTextSettings = {
  readonly sttProvider: string;
  readonly sttLanguage: string;
  readonly interim?: boolean;
  readonly sttLabel?: string;
  readonly continuousASRTimeoutInMS?: number;
  readonly sttVendorUtteranceEndMs?: number;
  readonly sttVendorEndpointing?: number;
};

/**
 * A validated dial-out request in canonical spelling. It's stored with the call and contains no
 * secrets. `notifyHeaders` are stored separately.
 */
export type DialoutRequest = CallerDetails & {
  readonly target: DialTarget;
  /** User part of the caller ID. */
  readonly caller: string;
  /** Headers to add to the first leg's INVITE. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly notifyUrl?: string;
  readonly ringTimeoutMs: number;
  /**
   * Maximum time that the call may wait in the queue. A call that waits longer is never dialled.
   */
  readonly queueTimeoutMs: number;
  /** Maximum time from the answer to the hang-up. The gateway's own limit applies too. */
  readonly maxDurationMs?: number;
  /**
   * Name of a trunk. Omitted for a `sip:` target that is dialled directly. For `tel:`, the intake
   * fills in the default trunk.
   */
  readonly trunk?: string;
  readonly metadata: Readonly<Record<string, unknown>>;
  /** The campaign that the call belongs to. */
  readonly campaign?: string;
  /** The rule set that applies to the call instead of the account's `default`. */
  readonly rules?: string;
  readonly consent?: Consent;
  /** IANA name of the zone in which the person is. Default: where the number's prefix lies. */
  readonly timeZone?: string;
  readonly machineDetection: MachineDetectionMode;
  readonly amd: AmdSettings;
  /**
   * The stream that the request defines, or otherwise the bot's registered stream. If there is
   * neither, the person hears silence.
   */
  readonly stream?: RequestedStream;
  /** Only with `machineDetection: detect`. */
  readonly voicemail?: RequestedVoicemail;
  readonly screening?: RequestedScreening;
  /**
   * A sound (`sound:<name>` or a URL) for a person to whom nobody was connected in time. The call
   * ends after it.
   */
  readonly abandonedSound?: string;
  /** The key (`0-9*#`) with which the person asks not to be called any more. */
  readonly optOutKey?: string;
  /** A sound for a person who opted out. The call ends after it. */
  readonly optOutSound?: string;
  /**
   * How the call is recorded. Omitted if neither the request nor its bot says anything about it.
   * False if the call must not be recorded.
   */
  readonly recording?: RequestedRecording | false;
  /** The plan to connect the person to an agent. */
  readonly bridge?: TransferPlan;
  /**
   * AMD events for which to send notifications. Default: all of them. An empty list selects none.
   */
  readonly amdEventsSubscription?: readonly AmdEventName[];
  /**
   * Event types for which to send notifications with status `Event`. Omitted if the request doesn't
   * select any.
   */
  readonly notifyEvents?: readonly SelectedEventType[];
  /**
   * W3C Trace Context of the span that accepted the request. If tracing is off, this is the value
   * from the request itself.
   */
  readonly traceparent?: string;
  /** The `tracestate` header from upstream systems. Only set together with `traceparent`. */
  readonly tracestate?: string;
};

/**
 * An accepted call. A process reads it from the database before dialling, and passes it to the call
 * machine.
 */
export type AcceptedCall = CallIdentity & {
  readonly request: DialoutRequest;
  readonly acceptedAt: Date;
  /**
   * Set if the account had calling rules when the call was taken. Such a call has passed their
   * check.
   */
  readonly isRuled?: true;
  /** Set when the call is taken, if its account has calling rules. */
  readonly ruling?: Ruling;
  /** When the hours end that permit the call. No INVITE to the person leaves from then on. */
  readonly hoursEndAt?: Date;
};

/** Returns the call's account if it had calling rules when the call was taken. */
export function ruledAccountIn({ isRuled, accountId }: AcceptedCall): {
  readonly ruledAccountId?: string;
} {
  return isRuled === true ? { ruledAccountId: accountId } : {};
}

/** Makes a forgotten case of a union fail to compile. Throws at run time. */
export function assertNever(value: never): never {
  throw new Error(`unexpected case: ${JSON.stringify(value)}`);
}
