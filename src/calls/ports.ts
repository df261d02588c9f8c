// The ports through which a call talks to SIP, its bot, sounds and the database. Each port has a
// real implementation and an embedded or scripted one, so none of them exposes a third-party type.

import type { AcceptedCall, DialTarget } from './call-types.ts';
import type { CallerDetails } from './caller/caller-members.ts';
import type { CallEvent } from './contract/call-event.ts';
import type { CallId } from './contract/identity.ts';
import type { LegEndResult, StoredLeg } from './contract/stored-leg.ts';
import type { KeyTransport } from './keys/keys.ts';
import type { FailedAttempt } from './life/call-contract.ts';
import type { CallStep } from './life/call-step.ts';
import type { Cause, EndFacts } from './life/end-facts.ts';
import type { MediaOffer } from './media.ts';
import type { Sound } from './playback/playback.ts';
import type { RecordingEncryption } from './recording/recording.ts';
import type { NumberedStream, StreamSettings } from './stream/stream.ts';
import type { Transfer } from './transfer/transfer.ts';

export type Clock = { now(): Date };

// ── SIP ──────────────────────────────────────────────────────────────────────────────────────────

export type SipPort = {
  /** What to offer to the trunk's carrier. */
  offerFor(trunk: string | undefined): MediaOffer;
  /** How the trunk's carrier expects to receive key presses. */
  keysFor(trunk: string | undefined): KeyTransport;
  /**
   * Places a leg: route, INVITE, digest authentication, provisional and final responses. Returns
   * immediately, and passes all events to `observer` in order. The last event is always exactly one
   * `failed`, or one `ended` after `answered`. Never throws on network problems: if no engine is
   * reachable, for example, the leg reports `failed`.
   *
   * If a gateway fails before its INVITE can have reached a phone, the port tries the trunk's next
   * gateway. The leg stays the same, but the new INVITE has a new Call-ID.
   */
  place(request: PlaceRequest, observer: LegObserver): CallLeg;
  /**
   * Ends a leg that an earlier process left up, using only the leg's stored state. Sends CANCEL or
   * BYE, with the ids used by the engine that has the leg. Bounded in time.
   *
   * `gone`: the engine or the far end has forgotten the leg. `cancelled`: the CANCEL was sent, but
   * the final response hasn't arrived and may still be a 200 OK. Keep calling this for 32 s (64*T1,
   * after which a callee stops retransmitting its 200 OK).
   */
  endOrphan(orphan: StoredLeg): Promise<LegEndResult>;
};

export type PlaceRequest = CallerDetails & {
  readonly callId: CallId;
  /** Id of a second leg. Omitted for the call's first leg. */
  readonly legId?: string;
  /** INVITE headers to send in addition to the trunk's own. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly target: DialTarget;
  readonly trunk?: string;
  /** User part of the caller ID. */
  readonly caller: string;
  readonly offerSdp: string;
  /**
   * Called before each of the leg's INVITEs, including those to further gateways or with
   * credentials. If it returns false, the INVITE isn't sent.
   */
  readonly mayInvite?: () => boolean;
  /**
   * The call's account. Omitted if the account had no calling rules when the call was taken, so
   * that nobody has to be asked before an INVITE.
   */
  readonly ruledAccountId?: string;
  /** When the hours of the target end. Omitted if no hours apply to the leg. */
  readonly hoursEndAt?: Date;
  /**
   * Asked before the INVITE to each gateway, once nothing else remains to be waited for. Bounded in
   * time. Never rejects. Default: not asked.
   */
  readonly mayReach?: () => Promise<Reachability | 'outside-hours'>;
};

/** unknown: the database didn't respond. In that case no INVITE leaves either. */
export type Reachability = 'free' | 'suppressed' | 'unknown';

/** Says whether calls of an account may reach a target. */
export type SuppressionCheck = {
  /** Bounded in time. Never rejects. */
  reach(accountId: string, target: DialTarget): Promise<Reachability>;
};

export type LegObserver = { observe(event: LegEvent): void };

/** A leg's events, in order. */
export type LegEvent =
  /**
   * The engine confirmed that the INVITE left. The call stores `leg`, so that another process can
   * CANCEL the INVITE. The event is repeated for each further gateway, but never follows a
   * provisional response other than 100.
   */
  | {
      readonly kind: 'sent';
      readonly gateway: string;
      readonly leg: StoredLeg;
      readonly at: Date;
    }
  /**
   * The INVITE was challenged or had too small a session interval (422), and was sent again. From
   * now on, only the new transaction can be CANCELled.
   */
  | { readonly kind: 'resent'; readonly leg: StoredLeg }
  /**
   * One gateway failed, and the leg is trying the next one. If the last gateway fails, the leg
   * reports `failed` instead.
   */
  | { readonly kind: 'attemptFailed'; readonly attempt: FailedAttempt }
  | {
      readonly kind: 'provisional';
      readonly status: number;
      readonly reason: string;
      readonly sdp?: string;
      readonly at: Date;
      /**
       * The early dialog created by an 18x. The call stores it, so that the dialog can be ended
       * even if the engine that sent the INVITE is unreachable.
       */
      readonly leg?: StoredLeg;
    }
  /**
   * The far end stated something new about the call before its end: who was reached, or in an 18x,
   * why the call is about to fail. Precedes the event of the same message.
   */
  | {
      readonly kind: 'stated';
      readonly connectedIdentity?: string;
      readonly cause?: Cause;
    }
  /**
   * A usable 200 OK arrived. If it contains no SDP, `sdp` is the last one of its early dialog. Call
   * `acknowledge()` to ACK it. If that doesn't happen within 5 s, or if `hangUp()` is called, the
   * leg sends ACK and BYE. Note that three kinds of 200 OK are never reported: one that crosses our
   * CANCEL, the second one of a fork, and one without a usable Contact.
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
   * A re-INVITE or UPDATE with an offer arrived. Unless `accept` is called before `observe`
   * returns, the leg rejects the offer with 488.
   */
  | {
      readonly kind: 'reoffer';
      readonly sdp: string;
      readonly accept: (answerSdp: string) => void;
    }
  /**
   * A re-INVITE without an offer arrived, which asks for ours (RFC 3261, section 14.2). Unless
   * `offer` is called before `observe` returns, the leg rejects the re-INVITE with 488.
   */
  | { readonly kind: 'offerRequested'; readonly offer: (offerSdp: string) => void }
  /**
   * The far end's ACK answered the offer that we made on request. Unless `accept` is called before
   * `observe` returns, the leg logs that the answer is unusable. The media then stays as it was.
   */
  | { readonly kind: 'lateAnswer'; readonly sdp: string; readonly accept: () => void }
  /** A key press arrived by SIP INFO (application/dtmf-relay or application/dtmf). */
  | {
      readonly kind: 'dtmf';
      readonly digit: string;
      readonly durationMs: number | undefined;
    };

export type LegFailure = {
  readonly at: Date;
  /**
   * The final SIP status. Also set if this process sent CANCEL (487) or the SIP stack timed out
   * (408).
   */
  readonly sipStatus?: number;
  /**
   * The reason phrase without the status, e.g. `Busy Here`. If there is no status, this says what
   * failed, e.g. `drachtio connection lost`.
   */
  readonly reason: string;
  /**
   * response: the far end sent the status. stack: the SIP stack generated it (408 after 32 s of
   * silence; 503 for an ICMP error, a refused connection or a DNS failure). transport: no engine is
   * connected, its connection broke, or it rejected the request. unusable: the 200 OK has no usable
   * SDP or Contact. cancelled: this process sent CANCEL, regardless of the final response that
   * followed. suppressed: the number was suppressed before the INVITE left. outside-hours: the
   * number's calling hours ended before the INVITE left.
   */
  readonly kind:
    | 'response'
    | 'stack'
    | 'transport'
    | 'unusable'
    | 'cancelled'
    | 'suppressed'
    | 'outside-hours';
  /** Only for `response`. */
  readonly facts?: EndFacts;
  /** Set if it is certain that no INVITE left for any gateway. */
  readonly isUnsent?: true;
};

export type LegEnd = {
  readonly at: Date;
  /**
   * remote: the far end sent BYE. local: `hangUp` was called. lost: the engine or its connection is
   * gone, the ACK wasn't sent in time, or the session timer expired.
   */
  readonly by: 'remote' | 'local' | 'lost';
  readonly reason: string;
  /** Only for `remote`. */
  readonly facts?: EndFacts;
};

export type CallLeg = {
  /**
   * Cancels an unanswered leg. `failed` with kind `cancelled` follows immediately, but the
   * transaction and the trunk slot are kept until the final response. A late 200 OK gets ACK and
   * BYE.
   */
  cancel(reason: string): void;
  /** ACKs the 200 OK. */
  acknowledge(): void;
  /** Sends BYE. `ended` follows immediately. The BYE transaction finishes in the background. */
  hangUp(reason: string): void;
  /**
   * Asks the far end of an answered call to call an agent (RFC 3515), and passes its progress to
   * `observe` in order. The last event is one `taken over`, `failed` or `unheard`, unless the leg
   * ends first. Bounded by `timeoutMs`. Only one REFER may be pending at a time.
   */
  refer(request: ReferRequest, observe: (event: ReferEvent) => void): void;
  /**
   * Sends a key press by SIP INFO in an answered call. Never rejects.
   *
   * @returns whether the far end accepted the key; false if it doesn't respond within 5 s
   */
  press(digit: string, durationMs: number): Promise<boolean>;
  /**
   * Resolves when this leg's last transaction or dialog has ended on the wire, which frees the
   * leg's trunk slot. Bounded in time. Never rejects.
   */
  readonly released: Promise<void>;
};

/** `trunk` is the call's trunk, which determines the number format. */
export type ReferRequest = Pick<PlaceRequest, 'target' | 'trunk' | 'headers'> & {
  readonly timeoutMs: number;
};

export type ReferEvent =
  /**
   * Status of the far end's own call to the agent. 202 is only the response to the REFER itself.
   */
  | { readonly kind: 'progress'; readonly sipStatus: number }
  | { readonly kind: 'taken over' }
  | { readonly kind: 'failed'; readonly failure: LegFailure }
  /** The far end accepted the REFER but never reported the result. */
  | { readonly kind: 'unheard'; readonly reason: string };

export type Admission =
  | { readonly ok: true }
  | { readonly ok: false; readonly reason: string; readonly isSuppressed?: true };

export type SecondLegPort = {
  /**
   * Checks that the app may dial the target, then waits until the trunk has a free slot and allows
   * another call to start. Gives up once `isWanted` returns false. Never rejects. The slot is freed
   * when the placed leg is released, or by `giveBack`.
   */
  admit(call: AcceptedCall, transfer: Transfer, isWanted: () => boolean): Promise<Admission>;
  /** Frees the slot that `admit` reserved if no leg was placed after all. */
  giveBack(legId: string): void;
};

// ── Streams and sounds ───────────────────────────────────────────────────────────────────────────

export type StreamPort = {
  /** Reads the settings for opening a stream. Rejects if they can't be read. */
  settingsOf(call: AcceptedCall, stream: NumberedStream): Promise<StreamSettings>;
};

export type SoundResult =
  | { readonly ok: true; readonly sound: Sound }
  /** `reason` is meant for people. It never contains a URL's query string. */
  | { readonly ok: false; readonly reason: string };

export type SoundPort = {
  /**
   * Loads a sound so that it's ready to play. See `playback/sound-reference.ts` for `reference`.
   * Bounded in time. Never rejects.
   */
  loadSound(accountId: string, reference: string): Promise<SoundResult>;
};

// ── Recording ────────────────────────────────────────────────────────────────────────────────────

export type PreparedRecording =
  /** `encryption` is omitted if the recording isn't encrypted. */
  | { readonly ok: true; readonly encryption?: RecordingEncryption }
  /** The key is unknown or unusable. `reason` is meant for people. */
  | { readonly ok: false; readonly reason: string };

export type RecordingPort = {
  /**
   * Makes the content key of a call's recording. Bounded in time. Never rejects.
   *
   * @param keyName name of the account's key. Undefined if the recording isn't encrypted
   */
  prepare(call: AcceptedCall, keyName: string | undefined): Promise<PreparedRecording>;
};

// ── Outbox ───────────────────────────────────────────────────────────────────────────────────────

/**
 * `not owned`: the call has ended, or another process owns it. In that case, the database stored
 * only the leg's state, and won't store any further steps from this process.
 */
export type StepResult = 'stored' | 'not owned';

/**
 * Stores call steps. A step is a list of events plus the state that they lead to. Notifications and
 * NATS messages are later sent from the database.
 */
export type CallOutbox = {
  /**
   * Stores a step atomically, in the order of the `append` calls. Retries while the database is
   * unreachable. The promise rejects if the database rejects the step's content, if the backlog is
   * full, or if this process is shutting down.
   */
  append(
    call: AcceptedCall,
    step: CallStep,
    options?: {
      /**
       * No process has claimed the call yet. In that case `not owned` means that a process has
       * claimed it in the meantime, or that the call has ended.
       */
      readonly isUntaken?: boolean;
      /** The database may already contain part of the step. */
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
 * A call that belongs to this process although no call machine is running for it here. Either this
 * process took the call over from a lost process, or never started it.
 */
export type UnfinishedCall = {
  readonly call: AcceptedCall;
  /** The process that dialled the call. */
  readonly ownerId: string;
  /**
   * Empty if no INVITE is known to have been sent. Contains two legs if a second leg was placed.
   */
  readonly legs: readonly StoredLeg[];
  readonly ringingAt?: Date;
  readonly answeredAt?: Date;
  /** The stored events, in order. */
  readonly events: readonly CallEvent[];
};

/**
 * Which unfinished calls to read: all calls taken over from lost processes, or the given calls of
 * this process.
 */
export type Unfinished = 'taken over' | { readonly callIds: readonly CallId[] };

/**
 * An ended call that may not be settled yet: some of its events may still have to be published on
 * the stream, or its far end may still need a BYE.
 */
export type UnsettledEnd = {
  readonly call: AcceptedCall;
  /** Events that may not have been published on the stream yet, in order, including the end. */
  readonly events: readonly CallEvent[];
  /** A lost process's legs, which may still be up. */
  readonly legs: readonly StoredLeg[];
};
