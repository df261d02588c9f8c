// The words of the domain: what a call is, what was asked for, and what can be said of it. No I/O, no libraries.

declare const brand: unique symbol;
type Brand<Base, Name extends string> = Base & { readonly [brand]: Name };

/** `call-<uuid>`: one phone call. Safe as a NATS subject token and as a path segment. */
export type CallId = Brand<string, 'CallId'>;

export const machineDetectionModes = ['disconnect', 'detect', 'disabled'] as const;
export type MachineDetectionMode = (typeof machineDetectionModes)[number];

export const amdEventNames = [
  'amd_human_detected',
  'amd_machine_detected',
  'amd_no_speech_detected',
  'amd_decision_timeout',
  'amd_machine_stopped_speaking',
  'amd_tone_detected',
  'amd_error',
  'amd_stopped',
] as const;
export type AmdEventName = (typeof amdEventNames)[number];

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

/**
 * used: the transcript's words were counted. late: the transcript did not cover what was said, the acoustic count stood in.
 * failed, unconfigured: the same, because the provider failed, or this gateway has none of that name (any more).
 */
export const transcriptionStates = ['used', 'late', 'failed', 'unconfigured'] as const;
export type TranscriptionState = (typeof transcriptionStates)[number];

/** What the detector bases an event on. Members are present where they are known. */
export type AmdEvidence = {
  /** Kebab-case: why this event was stated, e.g. `long-greeting`, `tone`, `call-ended`. */
  readonly reason: string;
  /** Sample clock: milliseconds from the 200 OK to the event. */
  readonly elapsedMs: number;
  readonly words?: number;
  /** 0 to 1. */
  readonly confidence?: number;
  readonly speechMs?: number;
  readonly pauseMs?: number;
  readonly tone?: { readonly hz: number; readonly ms: number };
  /** The event of this call that this one takes back. */
  readonly corrects?: AmdEventName;
  /** What the recogniser understood until then. */
  readonly transcript?: string;
  /** What became of the speech-to-text that was asked for. */
  readonly transcription?: TranscriptionState;
};

export type AmdEvent = { readonly event: AmdEventName } & AmdEvidence;

export type DialTarget =
  /** E.164 digits without `+` or separators. */
  | { readonly kind: 'tel'; readonly number: string }
  /** `port` left out means the transport's default (and NAPTR/SRV are not asked). */
  | { readonly kind: 'sip'; readonly user: string; readonly host: string; readonly port?: number };

/** A dial-out request after validation, in canonical spelling. Kept with the call. No secrets: `notifyHeaders` stay apart. */
export type DialoutRequest = {
  readonly target: DialTarget;
  /** User part of the caller ID. */
  readonly caller: string;
  readonly notifyUrl?: string;
  readonly ringTimeoutMs: number;
  /** Not dialled any more when it has waited for so long. */
  readonly queueTimeoutMs: number;
  /** Name of a trunk; left out for a `sip:` target that is dialled directly. Filled in with the default for `tel:`. */
  readonly trunk?: string;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly machineDetection: MachineDetectionMode;
  readonly amd: AmdSettings;
  /** Left out: all AMD events are notified. Empty: none. */
  readonly amdEventsSubscription?: readonly AmdEventName[];
};

/** Everything that identifies a call and that each of its events repeats. */
export type CallIdentity = {
  readonly callId: CallId;
  /** `sid-<uuid>`: names the dial-out request. */
  readonly sid: string;
  /** UUID: joins the notifications of one conversation. */
  readonly conversationId: string;
  readonly botId: string;
  readonly accountId: string;
  readonly appId: string;
};

/** A call that was accepted: the machine's input, and what a worker reads from SQL before it dials. */
export type AcceptedCall = CallIdentity & {
  readonly request: DialoutRequest;
  readonly acceptedAt: Date;
};

/** Public state of a call, as `GET …/calls/{callId}` says it. */
export const callStates = ['queued', 'dialing', 'ringing', 'answered', 'ended'] as const;
export type CallState = (typeof callStates)[number];

export const callOutcomes = [
  'completed',
  'machine',
  'busy',
  'declined',
  'no-answer',
  'unavailable',
  'invalid-number',
  'rejected',
  'carrier-failure',
  'gateway-failure',
  'cancelled',
  'expired',
  'unknown',
] as const;
/** Our finer word beside the three documented `reasonCode`s. Every call ends with exactly one. */
export type CallOutcome = (typeof callOutcomes)[number];

export type ReasonCode =
  | 'OK'
  | 'Busy here'
  | 'Service Unavailable'
  | 'Temporarily Unavailable'
  | 'Caller-disconnected'
  | 'Bot-disconnected'
  | 'Gateway-disconnected';

/** Status column of the interactions view. */
export type InteractionStatus =
  | 'queued'
  | 'dialing'
  | 'ringing'
  | 'answered'
  | 'completed'
  | 'failed'
  | 'machineDetected';

/** What `context.session.UserSession` holds for a bot flow, and what else it may want to know about the call. */
export type CallContext = {
  readonly session: {
    readonly UserSession: {
      /** AMD event names in the order they happened. */
      readonly amd: readonly AmdEventName[];
      readonly amdInfo: {
        readonly amdEvents?: readonly AmdEvent[];
        readonly amdGreeting?: string;
        readonly amdReason?: string;
        readonly amdRingDurationInMs?: number;
        readonly amdConnectDurationInMs?: number;
      };
    };
  };
  readonly metadata: Readonly<Record<string, unknown>>;
};

/** Makes a forgotten case of a union a compile error, and a loud one at run time. */
export function assertNever(value: never): never {
  throw new Error(`unexpected case: ${JSON.stringify(value)}`);
}
