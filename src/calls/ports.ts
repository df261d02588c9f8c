// The ports through which a call reaches the outside, in the vocabulary of calls. Each port has a
// real implementation and an embedded or scripted one. Third-party types never cross a port.

import type { AcceptedCall, DialTarget } from './call-types.ts';
import type { CallEvent } from './contract/call-event.ts';
import type { CallId } from './contract/identity.ts';
import type { LegEndResult, StoredLeg } from './contract/stored-leg.ts';
import type { KeyTransport } from './keys/keys.ts';
import type { FailedAttempt } from './life/call-contract.ts';
import type { CallStep } from './life/call-step.ts';
import type { VoiceCodec } from './media.ts';
import type { Sound } from './playback/playback.ts';
import type { NumberedStream, StreamSettings } from './stream/stream.ts';
import type { Transfer } from './transfer/transfer.ts';

export type Clock = { now(): Date };

// ── SIP ──────────────────────────────────────────────────────────────────────────────────────────

export type SipPort = {
  /** Returns the codecs to offer to the trunk's carrier, in the order that it prefers. */
  codecsFor(trunk: string | undefined): readonly VoiceCodec[];
  /** Returns how the trunk's carrier expects keys. */
  keysFor(trunk: string | undefined): KeyTransport;
  /**
   * Places a leg: route, INVITE, digest authentication, provisional and final responses. Returns
   * immediately. Passes all events to `observer` in order. The last event is exactly one `failed`,
   * or one `ended` after `answered`. Never throws because of the network: an unreachable engine is
   * reported as `failed`.
   * If a gateway fails before it can have reached a phone, the next gateway of the trunk is tried.
   * The leg stays the same, but its new INVITE has a new Call-ID.
   */
  place(request: PlaceRequest, observer: LegObserver): CallLeg;
  /**
   * Ends a leg that an earlier process left up, using only its stored state. Sends CANCEL or BYE by
   * id through the engine that holds the leg. Bounded in time.
   * `gone`: the engine or the far end no longer knows the leg. `cancelled`: the CANCEL was sent,
   * but the final response is still missing and may be a 200 OK. Call this again for 32 s (64*T1,
   * after which a callee stops retransmitting its 200 OK).
   */
  endOrphan(orphan: StoredLeg): Promise<LegEndResult>;
};

export type PlaceRequest = {
  readonly callId: CallId;
  /** Id of a second leg. Omitted for the first leg of the call. */
  readonly legId?: string;
  /** INVITE headers in addition to the trunk's headers. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly target: DialTarget;
  readonly trunk?: string;
  /** User part of the caller ID. */
  readonly caller: string;
  readonly offerSdp: string;
  /**
   * Called before each INVITE of the leg, including those to further gateways or with credentials.
   * No INVITE leaves if it returns false.
   */
  readonly mayInvite?: () => boolean;
};

export type LegObserver = { observe(event: LegEvent): void };

/** Events of a leg, in order. */
export type LegEvent =
  /**
   * The engine confirmed that the INVITE left. The call stores `leg`, so that another process can
   * CANCEL the INVITE. Reported again for each further gateway, but never after a provisional
   * response other than 100.
   */
  | {
      readonly kind: 'sent';
      readonly gateway: string;
      readonly leg: StoredLeg;
      readonly at: Date;
    }
  /**
   * The INVITE was challenged and sent again with credentials. From here on only the new
   * transaction can be CANCELled.
   */
  | { readonly kind: 'resent'; readonly leg: StoredLeg }
  /** One gateway failed and the next one is tried. If the last gateway fails, that is `failed`. */
  | { readonly kind: 'attemptFailed'; readonly attempt: FailedAttempt }
  | {
      readonly kind: 'provisional';
      readonly status: number;
      readonly reason: string;
      readonly sdp?: string;
      readonly at: Date;
      /**
       * The early dialog of an 18x. The call stores it, so that it can be ended even if the engine
       * that sent the INVITE is unreachable.
       */
      readonly leg?: StoredLeg;
    }
  /**
   * A usable 200 OK arrived. Call `acknowledge()` to ACK it. If that does not happen within 5 s, or
   * if `hangUp()` is called, the leg sends ACK and BYE. Three kinds of 200 OK are never reported:
   * one that crosses our CANCEL, the second one of a fork, and one without Contact.
   */
  | {
      readonly kind: 'answered';
      readonly sdp: string;
      readonly leg: StoredLeg;
      readonly at: Date;
    }
  | { readonly kind: 'failed'; readonly failure: LegFailure }
  /** The dialog ended after `answered`. */
  | { readonly kind: 'ended'; readonly end: LegEnd }
  /**
   * A re-INVITE or UPDATE with an offer arrived. The leg refuses it with 488 unless `accept` is
   * called before `observe` returns.
   */
  | {
      readonly kind: 'reoffer';
      readonly sdp: string;
      readonly accept: (answerSdp: string) => void;
    }
  /** A key arrived by SIP INFO (application/dtmf-relay or application/dtmf). */
  | {
      readonly kind: 'dtmf';
      readonly digit: string;
      readonly durationMs: number | undefined;
    };

export type LegFailure = {
  readonly at: Date;
  /**
   * The final SIP status. Also set if this process sent CANCEL (487), and if the SIP stack timed
   * out (408).
   */
  readonly sipStatus?: number;
  /**
   * Reason phrase without the status, e.g. `Busy Here`, or what failed, e.g. `drachtio connection
   * lost`.
   */
  readonly reason: string;
  /**
   * response: the far end sent the status. stack: the SIP stack generated it (408 after 32 s of
   * silence; 503 for an ICMP error, a refused connection or DNS). transport: no engine is
   * connected, its connection broke, or it refused the request. unusable: the 200 OK has no usable
   * SDP or Contact. cancelled: this process sent CANCEL, whatever final response followed.
   */
  readonly kind: 'response' | 'stack' | 'transport' | 'unusable' | 'cancelled';
};

export type LegEnd = {
  readonly at: Date;
  /**
   * remote: the far end sent BYE. local: `hangUp` was called. lost: the engine or its connection is
   * gone, no ACK was sent in time, or the session timer expired.
   */
  readonly by: 'remote' | 'local' | 'lost';
  readonly reason: string;
};

export type CallLeg = {
  /**
   * Cancels an unanswered leg. `failed` with kind `cancelled` follows immediately. The transaction
   * and the trunk slot are kept until the final response. A late 200 OK gets ACK and BYE.
   */
  cancel(reason: string): void;
  /** ACKs the 200 OK. */
  acknowledge(): void;
  /** Sends BYE. `ended` follows immediately, and the BYE transaction finishes in the background. */
  hangUp(reason: string): void;
  /**
   * Asks the far end of an answered call to call an agent (RFC 3515). Passes progress to `observe`
   * in order. The last event is one `taken over`, `failed` or `unheard`, unless the leg ends first.
   * Bounded by `timeoutMs`. Only one REFER may be pending.
   */
  refer(request: ReferRequest, observe: (event: ReferEvent) => void): void;
  /**
   * Presses a key by SIP INFO in an answered call. Never rejects.
   *
   * @returns whether the far end accepted the key; false if it does not answer within 5 s
   */
  press(digit: string, durationMs: number): Promise<boolean>;
  /**
   * Resolves when no transaction or dialog of this leg is on the wire any more, so that its trunk
   * slot is free. Bounded in time. Never rejects.
   */
  readonly released: Promise<void>;
};

/** `trunk` is the call's trunk, which defines how numbers are written. */
export type ReferRequest = Pick<PlaceRequest, 'target' | 'trunk' | 'headers'> & {
  readonly timeoutMs: number;
};

export type ReferEvent =
  /** Status of the far end's own call to the agent. 202 is the response to the REFER itself. */
  | { readonly kind: 'progress'; readonly sipStatus: number }
  | { readonly kind: 'taken over' }
  | { readonly kind: 'failed'; readonly failure: LegFailure }
  /** The far end accepted the REFER but never reported a result. */
  | { readonly kind: 'unheard'; readonly reason: string };

/** Decides whether and when a second leg may be placed. */
export type SecondLegPort = {
  /**
   * Waits until a second leg may be placed: the app may dial the target, and the trunk has a free
   * slot and a start. Stops waiting when `isWanted` returns false. Never rejects. The slot is given
   * back when the placed leg is released, or by `giveBack`.
   */
  admit(
    call: AcceptedCall,
    transfer: Transfer,
    isWanted: () => boolean,
  ): Promise<{ readonly ok: true } | { readonly ok: false; readonly reason: string }>;
  /** Gives back the slot that `admit` took, because no leg was placed. */
  giveBack(legId: string): void;
};

// ── Streams and sounds ───────────────────────────────────────────────────────────────────────────

export type StreamPort = {
  /** Reads the settings that a stream is opened with. Rejects if they cannot be read. */
  settingsOf(call: AcceptedCall, stream: NumberedStream): Promise<StreamSettings>;
};

export type SoundResult =
  | { readonly ok: true; readonly sound: Sound }
  /** `reason` is for people. It never contains the query string of a URL. */
  | { readonly ok: false; readonly reason: string };

export type SoundPort = {
  /**
   * Loads a sound so that it is ready to play. `playback/sound-reference.ts` defines `reference`.
   * Bounded in time. Never rejects.
   */
  loadSound(accountId: string, reference: string): Promise<SoundResult>;
};

// ── Outbox ───────────────────────────────────────────────────────────────────────────────────────

/**
 * `not owned`: the call has ended, or another process owns it. SQL stored only the state of the
 * leg, and will store no further step of this process.
 */
export type StepResult = 'stored' | 'not owned';

/** Stores the steps of calls. Notifications and NATS messages are sent from what is stored. */
export type CallOutbox = {
  /**
   * Stores a step atomically, in the order of the calls to `append`. Retries while SQL is
   * unreachable. Rejects if SQL refuses the content, if the backlog is full, and at shutdown.
   */
  append(
    call: AcceptedCall,
    step: CallStep,
    options?: {
      /**
       * No process has taken the call yet. `not owned` then means that a process has taken it
       * meanwhile, or that it has ended.
       */
      readonly isUntaken?: boolean;
      /** SQL may already hold some of the step. */
      readonly isRepeated?: boolean;
      /**
       * A person may still be in the call. The process that hangs up then publishes the call's
       * events itself and marks the call as settled.
       */
      readonly isRecovered?: boolean;
    },
  ): Promise<StepResult>;
};

// ── Recovery ─────────────────────────────────────────────────────────────────────────────────────

/**
 * A call that belongs to this process but has no machine here. Either this process took it over
 * from a lost process, or it never started the call.
 */
export type UnfinishedCall = {
  readonly call: AcceptedCall;
  /** Id of the process that dialled the call. */
  readonly ownerId: string;
  /** Empty if no INVITE is confirmed to have left. Two legs if a second leg was placed. */
  readonly legs: readonly StoredLeg[];
  readonly ringingAt?: Date;
  readonly answeredAt?: Date;
  /** The events that SQL holds, in order. */
  readonly events: readonly CallEvent[];
};

/**
 * Selects the unfinished calls to read: all calls taken over from lost processes, or the given
 * calls of this process.
 */
export type Unfinished = 'taken over' | { readonly callIds: readonly CallId[] };

/**
 * An ended call that may not be settled yet: events for the stream, or a BYE to the far end, may
 * still be owed.
 */
export type UnsettledEnd = {
  readonly call: AcceptedCall;
  /** Events that are not known to be on the stream, in order, including the end. */
  readonly events: readonly CallEvent[];
  /** Legs of a lost process. They may still be up. */
  readonly legs: readonly StoredLeg[];
};
