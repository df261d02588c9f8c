// What a call needs from the world, in the call's own words. Each port has a real implementation and an embedded or
// scripted one; third-party types never cross it.

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

// ── SIP ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

export type SipPort = {
  /** What the carrier of a call wants to be offered, in its order. */
  codecsFor(trunk: string | undefined): readonly VoiceCodec[];
  /** How the carrier of a call wants keys to be pressed. */
  keysFor(trunk: string | undefined): KeyTransport;
  /**
   * Places a call: route, INVITE, digest, provisional and final responses. Returns at once; everything that happens is
   * told to `observer`, in order, ending with exactly one `failed` or (after `answered`) one `ended`. Never throws
   * for a reason of the network: an unreachable engine is a `failed`. Where a gateway fails before any phone can have been
   * reached, the next one of the trunk is tried: the same leg, another INVITE with a Call-ID of its own.
   */
  place(request: PlaceRequest, observer: LegObserver): CallLeg;
  /**
   * Ends what an earlier process left up at the far end, known only from what was stored: CANCELs or BYEs by id on the
   * engine that holds it. Bounded in time. `gone`: the engine or the far end no longer knows it. `cancelled`: the CANCEL has
   * left, and the final response has not come yet. It may still be a 200: ask again, for 32 s (64*T1, after which a callee
   * repeats it no more).
   */
  endOrphan(orphan: StoredLeg): Promise<LegEndResult>;
};

export type PlaceRequest = {
  readonly callId: CallId;
  /** Of a second leg; left out: the call's first. */
  readonly legId?: string;
  /** More than the trunk's own, of the INVITE. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly target: DialTarget;
  readonly trunk?: string;
  /** User part of the caller ID. */
  readonly caller: string;
  readonly offerSdp: string;
  /** Asked before each INVITE that the call needs, to the next gateway or with credentials: false, and none leaves. */
  readonly mayInvite?: () => boolean;
};

export type LegObserver = { observe(event: LegEvent): void };

/** What a leg tells of itself, in order. */
export type LegEvent =
  /**
   * The INVITE left (the engine confirmed it). Stored, so that another process can CANCEL it. Again for each gateway that is
   * tried; never after a provisional response but 100.
   */
  | {
      readonly kind: 'sent';
      readonly gateway: string;
      readonly leg: StoredLeg;
      readonly at: Date;
    }
  /** The INVITE was challenged and sent again with credentials: only the new transaction can be CANCELled from here on. */
  | { readonly kind: 'resent'; readonly leg: StoredLeg }
  /** This gateway is given up for the next one. The last one's failure is `failed`. */
  | { readonly kind: 'attemptFailed'; readonly attempt: FailedAttempt }
  | {
      readonly kind: 'provisional';
      readonly status: number;
      readonly reason: string;
      readonly sdp?: string;
      readonly at: Date;
      /** Of an 18x: stored, so that the early dialog can be ended where the engine that knew the INVITE is unreachable. */
      readonly leg?: StoredLeg;
    }
  /**
   * A usable 200 OK arrived. It is ACKed when `acknowledge()` is called; not called within 5 s, or `hangUp()` called
   * instead: ACK and BYE. A 200 that crosses our CANCEL, a fork's second 200, one without Contact: never told here.
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
  /** Re-INVITE or UPDATE with an offer. Not accepted with an answer SDP before `observe` returns: refused with 488. */
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
  /** Also for a 487 after our CANCEL, and for a time-out of our own waiting. */
  readonly sipStatus?: number;
  /** Phrase without the status, e.g. `Busy Here`; or what failed, e.g. `drachtio connection lost`. */
  readonly reason: string;
  /**
   * response: a real one of the far end. stack: made up by the SIP stack (408 after 32 s of silence, 503 for ICMP,
   * refusal, DNS). transport: no engine, its connection broke, request refused by the engine. unusable: a 200 without usable SDP or Contact.
   * cancelled: our CANCEL was done, whatever final response came.
   */
  readonly kind: 'response' | 'stack' | 'transport' | 'unusable' | 'cancelled';
};

export type LegEnd = {
  readonly at: Date;
  /** remote: BYE. local: our `hangUp`. lost: the engine or its connection went away, or ACK/session timer ran out. */
  readonly by: 'remote' | 'local' | 'lost';
  readonly reason: string;
};

export type CallLeg = {
  /**
   * Gives up a call that is not answered. `failed` with kind `cancelled` follows at once; the transaction and the
   * trunk's slot are kept until the final response, and a late 200 is ACKed and BYEd.
   */
  cancel(reason: string): void;
  /** ACKs the 200. */
  acknowledge(): void;
  /** BYE; `ended` follows at once, with the BYE's transaction finished in the background. */
  hangUp(reason: string): void;
  /**
   * Asks the far end of an answered call to call an agent (RFC 3515). Told what comes of it, in order, ending with one
   * `taken over` or `failed`, unless the leg ends before. Bounded by the request's time-out. One at a time.
   */
  refer(request: ReferRequest, observe: (event: ReferEvent) => void): void;
  /**
   * Presses a key by SIP INFO, in an answered call. Whether the far end has taken it; false also where it does not answer for 5 s.
   * Never rejects.
   */
  press(digit: string, durationMs: number): Promise<boolean>;
  /** Settles when nothing of this leg is on the wire any more: the trunk's slot is free. Bounded; never rejects. */
  readonly released: Promise<void>;
};

/** `trunk`: of the call, how numbers are written. */
export type ReferRequest = Pick<PlaceRequest, 'target' | 'trunk' | 'headers'> & {
  readonly timeoutMs: number;
};

export type ReferEvent =
  /** The far end says what its own call has come to; 202 for the REFER itself. */
  | { readonly kind: 'progress'; readonly sipStatus: number }
  | { readonly kind: 'taken over' }
  | { readonly kind: 'failed'; readonly failure: LegFailure }
  /** It was taken, and then nothing was heard of it. */
  | { readonly kind: 'unheard'; readonly reason: string };

/** A second leg of a call: who may place one, and when. */
export type SecondLegPort = {
  /**
   * Asks for what a leg needs: that the app may call there, and room on the trunk at the trunk's pace, which is waited for as long
   * as it is wanted. Never rejects. What was given is given back when the placed leg is released, or by `giveBack`.
   */
  admit(
    call: AcceptedCall,
    transfer: Transfer,
    isWanted: () => boolean,
  ): Promise<{ readonly ok: true } | { readonly ok: false; readonly reason: string }>;
  /** Nothing was placed. */
  giveBack(legId: string): void;
};

// ── What a call's media needs ────────────────────────────────────────────────────────────────────────────────────────

export type StreamPort = {
  /** Rejects when what the stream needs cannot be read. */
  settingsOf(call: AcceptedCall, stream: NumberedStream): Promise<StreamSettings>;
};

export type SoundResult =
  | { readonly ok: true; readonly sound: Sound }
  /** In words for people; without the query of a URL. */
  | { readonly ok: false; readonly reason: string };

export type SoundPort = {
  /** Ready to be played. `reference`: see `contract/sound-reference.ts`. Never rejects; bounded in time. */
  loadSound(accountId: string, reference: string): Promise<SoundResult>;
};

// ── Outbox ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/** `not ours`: it has ended, or is another process's; then nothing but the leg was stored, and nothing more will be. */
export type StepResult = 'stored' | 'not owned';

/** Stores what happens to calls; what is stored is notified and published from there. */
export type CallOutbox = {
  /**
   * All or nothing, in the order of the calls to `append`, again and again while SQL is unreachable. Rejects when SQL refuses the
   * content, when too much waits, and at the end of this process.
   */
  append(
    call: AcceptedCall,
    step: CallStep,
    options?: {
      /** No process has taken the call. `not ours`: one has, or it has ended. */
      readonly isUntaken?: boolean;
      /** SQL may hold some of it. */
      readonly isRepeated?: boolean;
      /** A person may be left in the call: the process that hangs up publishes its events, and says when it is done with. */
      readonly isRecovered?: boolean;
    },
  ): Promise<StepResult>;
};

// ── Recovery ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/** A call of this process without a machine: of a lost process, whose calls it took over, or one that it never had. */
export type UnfinishedCall = {
  readonly call: AcceptedCall;
  /** Who dialled it. */
  readonly ownerId: string;
  /** None where no INVITE was confirmed to have left; two where a second leg was placed. */
  readonly legs: readonly StoredLeg[];
  readonly ringingAt?: Date;
  readonly answeredAt?: Date;
  /** That SQL holds, in order. */
  readonly events: readonly CallEvent[];
};

/** Whose unfinished calls: those taken over from lost processes, or some of this one. */
export type Unfinished = 'taken over' | { readonly callIds: readonly CallId[] };

/** A call that has ended, and what may still be owed: events on the stream, a BYE to its far end. */
export type UnsettledEnd = {
  readonly call: AcceptedCall;
  /** Not known to be on the stream, in order, the end among them. */
  readonly events: readonly CallEvent[];
  /** Of a process that was lost: they may be up. */
  readonly legs: readonly StoredLeg[];
};
