// What a call needs from the outside, in the terms of the call. Each port has a real implementation
// and an embedded or scripted one. Third-party types never cross a port.

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
  /** The codecs to offer to the carrier of a call, in the order that the carrier wants. */
  codecsFor(trunk: string | undefined): readonly VoiceCodec[];
  /** How the carrier of a call wants keys to be sent. */
  keysFor(trunk: string | undefined): KeyTransport;
  /**
   * Places a leg: route, INVITE, digest authentication, provisional and final responses. Returns at
   * once. Passes everything that happens to `observer`, in order, ending with exactly one `failed`
   * or (after `answered`) one `ended`. Never throws because of the network: an unreachable engine
   * is reported as `failed`.
   * If a gateway fails before it can have reached a phone, the next gateway of the trunk is tried.
   * That is the same leg, with another INVITE and a Call-ID of its own.
   */
  place(request: PlaceRequest, observer: LegObserver): CallLeg;
  /**
   * Ends a leg that an earlier process left up, known only from what was stored: sends CANCEL or
   * BYE by id on the engine that holds the leg. Bounded in time.
   * `gone`: the engine or the far end no longer knows the leg. `cancelled`: the CANCEL was sent,
   * and the final response has not come yet. It may still be a 200 OK: call this again, for 32 s
   * (64*T1, after which a callee stops repeating its 200 OK).
   */
  endOrphan(orphan: StoredLeg): Promise<LegEndResult>;
};

export type PlaceRequest = {
  readonly callId: CallId;
  /** Id of a second leg. Omitted for the first leg of the call. */
  readonly legId?: string;
  /** Headers of the INVITE in addition to those of the trunk. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly target: DialTarget;
  readonly trunk?: string;
  /** User part of the caller ID. */
  readonly caller: string;
  readonly offerSdp: string;
  /**
   * Called before each INVITE of the leg, to another gateway or with credentials. No INVITE leaves
   * if it returns false.
   */
  readonly mayInvite?: () => boolean;
};

export type LegObserver = { observe(event: LegEvent): void };

/** Events of a leg, in order. */
export type LegEvent =
  /**
   * The INVITE left, as the engine confirmed. `leg` is stored, so that another process can CANCEL
   * the INVITE. Reported again for each further gateway, but never after a provisional response
   * other than 100.
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
  /**
   * This gateway is given up for the next one. The failure of the last gateway is reported as
   * `failed`.
   */
  | { readonly kind: 'attemptFailed'; readonly attempt: FailedAttempt }
  | {
      readonly kind: 'provisional';
      readonly status: number;
      readonly reason: string;
      readonly sdp?: string;
      readonly at: Date;
      /**
       * The early dialog of an 18x. It is stored so that it can be ended even if the engine of the
       * INVITE is unreachable.
       */
      readonly leg?: StoredLeg;
    }
  /**
   * A usable 200 OK arrived. `acknowledge()` ACKs it. The leg sends ACK and BYE instead if
   * `acknowledge()` is not called within 5 s, or if `hangUp()` is called. Never reported: a 200 OK
   * that crosses the CANCEL of the gateway, the second 200 OK of a fork, and a 200 OK without
   * Contact.
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
   * Re-INVITE or UPDATE with an offer. It is refused with 488 unless `accept` is called before
   * `observe` returns.
   */
  | {
      readonly kind: 'reoffer';
      readonly sdp: string;
      readonly accept: (answerSdp: string) => void;
    }
  /** SIP INFO (application/dtmf-relay or application/dtmf). */
  | {
      readonly kind: 'dtmf';
      readonly digit: string;
      readonly durationMs: number | undefined;
    };

export type LegFailure = {
  readonly at: Date;
  /**
   * The final status. Also present for a 487 after a CANCEL of the gateway, and for a time-out of
   * the gateway.
   */
  readonly sipStatus?: number;
  /**
   * Reason phrase without the status, e.g. `Busy Here`, or what failed, e.g. `drachtio connection
   * lost`.
   */
  readonly reason: string;
  /**
   * response: the far end sent it. stack: the SIP stack made it up (408 after 32 s of silence; 503
   * for an ICMP error, a refused connection or DNS). transport: there is no engine, its connection
   * broke, or the engine refused the request. unusable: a 200 OK without usable SDP or Contact.
   * cancelled: the gateway sent CANCEL, whatever final response came.
   */
  readonly kind: 'response' | 'stack' | 'transport' | 'unusable' | 'cancelled';
};

export type LegEnd = {
  readonly at: Date;
  /**
   * remote: the far end sent BYE. local: `hangUp` was called. lost: the engine or its connection is
   * gone, no ACK was sent in time, or the session timer ran out.
   */
  readonly by: 'remote' | 'local' | 'lost';
  readonly reason: string;
};

export type CallLeg = {
  /**
   * Gives up a leg that is not answered. `failed` with kind `cancelled` follows at once. The
   * transaction and the slot of the trunk are kept until the final response. A late 200 OK gets ACK
   * and BYE.
   */
  cancel(reason: string): void;
  /** ACKs the 200 OK. */
  acknowledge(): void;
  /**
   * Sends BYE. `ended` follows at once, and the transaction of the BYE finishes in the background.
   */
  hangUp(reason: string): void;
  /**
   * Asks the far end of an answered call to call an agent (RFC 3515). Passes the progress to
   * `observe`, in order, ending with one `taken over`, `failed` or `unheard`, unless the leg ends
   * before. Bounded by the time-out of the request. One REFER at a time.
   */
  refer(request: ReferRequest, observe: (event: ReferEvent) => void): void;
  /**
   * Presses a key by SIP INFO in an answered call. Never rejects.
   *
   * @returns whether the far end took the key; false also if it does not answer for 5 s
   */
  press(digit: string, durationMs: number): Promise<boolean>;
  /**
   * Resolves when nothing of this leg is on the wire any more, so that the slot of the trunk is
   * free. Bounded in time; never rejects.
   */
  readonly released: Promise<void>;
};

/** `trunk` is the trunk of the call. It decides how numbers are written. */
export type ReferRequest = Pick<PlaceRequest, 'target' | 'trunk' | 'headers'> & {
  readonly timeoutMs: number;
};

export type ReferEvent =
  /**
   * The far end reports the status of its own call to the agent. 202 is the response to the REFER
   * itself.
   */
  | { readonly kind: 'progress'; readonly sipStatus: number }
  | { readonly kind: 'taken over' }
  | { readonly kind: 'failed'; readonly failure: LegFailure }
  /** The far end took the REFER, and then reported nothing more. */
  | { readonly kind: 'unheard'; readonly reason: string };

/** Decides whether and when a second leg may be placed. */
export type SecondLegPort = {
  /**
   * Waits for what a second leg needs: the permission of the app to call there, and room on the
   * trunk at the pace of the trunk. Waits as long as `isWanted` is true. Never rejects. What it
   * took is given back when the placed leg is released, or by `giveBack`.
   */
  admit(
    call: AcceptedCall,
    transfer: Transfer,
    isWanted: () => boolean,
  ): Promise<{ readonly ok: true } | { readonly ok: false; readonly reason: string }>;
  /** Gives back what `admit` took, because no leg was placed. */
  giveBack(legId: string): void;
};

// ── What a call's media needs ────────────────────────────────────────────────────────────────────

export type StreamPort = {
  /** Reads what a stream is opened with. Rejects if that cannot be read. */
  settingsOf(call: AcceptedCall, stream: NumberedStream): Promise<StreamSettings>;
};

export type SoundResult =
  | { readonly ok: true; readonly sound: Sound }
  /** `reason` is written for people and leaves out the query of a URL. */
  | { readonly ok: false; readonly reason: string };

export type SoundPort = {
  /**
   * Loads a sound so that it is ready to be played. `reference`: see `playback/sound-reference.ts`.
   * Never rejects; bounded in time.
   */
  loadSound(accountId: string, reference: string): Promise<SoundResult>;
};

// ── Outbox ───────────────────────────────────────────────────────────────────────────────────────

/**
 * `not owned`: the call has ended, or another process owns it. Then SQL stored nothing but the
 * state of the leg, and will store nothing more for this process.
 */
export type StepResult = 'stored' | 'not owned';

/** Stores what happens to calls. What is stored is notified and published from there. */
export type CallOutbox = {
  /**
   * Stores a step completely or not at all, in the order of the calls to `append`. Retries while
   * SQL is unreachable. Rejects if SQL refuses the content, if too much waits, and at the end of
   * this process.
   */
  append(
    call: AcceptedCall,
    step: CallStep,
    options?: {
      /**
       * The call was taken by no process so far. `not owned` then means that a process has taken
       * it, or that it has ended.
       */
      readonly isUntaken?: boolean;
      /** SQL may already hold some of the step. */
      readonly isRepeated?: boolean;
      /**
       * A person may be left in the call. The process that hangs up publishes the events of the
       * call itself, and marks the call as settled.
       */
      readonly isRecovered?: boolean;
    },
  ): Promise<StepResult>;
};

// ── Recovery ─────────────────────────────────────────────────────────────────────────────────────

/**
 * A call that belongs to this process but has no machine: a call of a lost process that this
 * process took over, or one that this process never started.
 */
export type UnfinishedCall = {
  readonly call: AcceptedCall;
  /** Id of the process that dialled the call. */
  readonly ownerId: string;
  /** Empty if no INVITE was confirmed to have left. Two legs if a second leg was placed. */
  readonly legs: readonly StoredLeg[];
  readonly ringingAt?: Date;
  readonly answeredAt?: Date;
  /** The events that SQL holds, in order. */
  readonly events: readonly CallEvent[];
};

/**
 * Which unfinished calls to read: those taken over from lost processes, or some of this process.
 */
export type Unfinished = 'taken over' | { readonly callIds: readonly CallId[] };

/**
 * A call that has ended and may not be settled: events for the stream, or a BYE to the far end, may
 * be owed.
 */
export type UnsettledEnd = {
  readonly call: AcceptedCall;
  /** Events that are not known to be on the stream, in order, including the end. */
  readonly events: readonly CallEvent[];
  /** Legs of a lost process. They may still be up. */
  readonly legs: readonly StoredLeg[];
};
