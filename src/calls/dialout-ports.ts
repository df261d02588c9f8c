// Between the HTTP edge and the dial-out work: how a request is handed in, how its route is checked, how a command finds its call.

import type { AcceptedCall, DialoutRequest, DialTarget } from './call-types.ts';
import type { Command, CommandReply } from './contract/command.ts';
import type { CallId } from './contract/identity.ts';
import type { AppLimits } from './target/app-limits.ts';
import type { NumberReading } from './target/number-reading.ts';

/** The intake fills in what the caller left to it. */
export type SubmittedRequest = Omit<DialoutRequest, 'queueTimeoutMs'> & {
  readonly queueTimeoutMs?: number;
};

export type Idempotency = { readonly key: string; readonly requestHash: string };

export type Submission = {
  readonly appId: string;
  readonly accountId: string;
  readonly botId: string;
  readonly request: SubmittedRequest;
  /** The caller's headers for notifications; encrypted before they are stored. */
  readonly notifyHeaders?: Readonly<Record<string, string>>;
  readonly idempotency?: Idempotency;
  /** Of the app; left out: none. */
  readonly limits?: AppLimits;
  readonly remarks?: DialoutRemarks;
};

/** What an answer says beside the ids, where there is something to say. */
export type DialoutRemarks = {
  /** URI of a number that was written without `+`, as it is dialled. */
  readonly target?: string;
  /** Likewise. */
  readonly bridge?: { readonly to: string };
  /** Paths of members that nothing knows. */
  readonly ignored?: readonly string[];
};

/** The answer to a dial-out request; stored with its idempotency key. */
export type DialoutAnswer = DialoutRemarks & {
  readonly sid: string;
  readonly callId: string;
  readonly conversationId: string;
};

export type SubmitResult =
  | { readonly kind: 'accepted'; readonly answer: DialoutAnswer }
  /** The same idempotency key and the same request came before. */
  | { readonly kind: 'replayed'; readonly answer: DialoutAnswer }
  /** The same idempotency key with another request. */
  | { readonly kind: 'conflict' }
  | { readonly kind: 'full'; readonly retryAfterS: number }
  /** Over a limit of the app. */
  | { readonly kind: 'target-forbidden' }
  | {
      readonly kind: 'limit-reached';
      readonly limit: 'callsAtOnce' | 'callsPerDay';
      readonly retryAfterS: number;
    }
  /** Nothing was accepted: the process stops, or the database is unreachable. */
  | { readonly kind: 'unavailable'; readonly reason: string; readonly retryAfterS: number }
  /** The database's answer was lost, or what the key was answered before cannot be read: it may be accepted, and dialled. */
  | { readonly kind: 'unknown'; readonly reason: string; readonly retryAfterS: number };

export type Intake = { submit(submission: Submission): Promise<SubmitResult> };

/** Checks at the edge that a target can be routed, so that a bad request is a 400 and not a failed call. */
export type RoutePlanner = {
  plan(
    target: DialTarget,
    trunk: string | undefined,
    /** Whose trunks they may be; the default is that account's own, if it has one. */
    accountId: string,
  ):
    | {
        readonly ok: true /** The trunk that will carry it; absent for a direct `sip:` call. */;
        readonly trunk?: string;
      }
    | { readonly ok: false; readonly field: 'target' | 'trunk'; readonly message: string };
  /** Whether a trunk carries this header of an application, which vouches for something. */
  passes(trunk: string, headerName: string): boolean;
};

export type CommandRouting = {
  /**
   * Has a command done, wherever the call is. Undefined: the process that has it did not answer; whether it was done is not known.
   * `askedBy`: as it is shown to who looks into the call.
   */
  run(callId: CallId, command: Command, askedBy?: string): Promise<CommandReply | undefined>;
};

// ── Storing calls ────────────────────────────────────────────────────────────────────────────────────────────────────

/** The notification of the first event, as it is signed and sent. */
export type QueuedNotification = { readonly origin: string; readonly body: string };

/** What SQL stores or judges beside the call. */
export type AcceptExtra = Pick<
  Submission,
  'notifyHeaders' | 'idempotency' | 'limits' | 'remarks'
> & {
  /** Left out: the request does not select the first event. */
  readonly queuedNotification?: QueuedNotification;
};

export type EarlierResult = Extract<SubmitResult, { kind: 'replayed' | 'conflict' }>;

export type LimitName = 'target' | 'callsAtOnce' | 'callsPerDay';

export type AcceptResult =
  | { readonly kind: 'accepted' }
  | EarlierResult
  /** Over a limit of the app; nothing was stored. */
  | { readonly kind: 'refused'; readonly limit: LimitName }
  /** Certainly not, now. `isKeyNew`: its key did not come before; left out: that is not known. */
  | { readonly kind: 'not-stored'; readonly cause: unknown; readonly isKeyNew?: true };

export type CallIntake = {
  /** Durable when it resolves so, exactly once for each idempotency key (kept for 24 h). @throws Error where it is not known. */
  accept(call: AcceptedCall, extra: AcceptExtra): Promise<AcceptResult>;
  /**
   * What the key was answered before.
   * @returns undefined if the key did not come, or has expired
   * @throws Error where that is not known
   */
  earlier(call: AcceptedCall, idempotency: Idempotency): Promise<EarlierResult | undefined>;
};

/** The app that placed a call, as far as its commands depend on it. */
export type CallingApp = NumberReading & {
  readonly limits?: AppLimits;
};

/** Rejects while SQL does not answer. */
export type AppLookup = {
  /** @returns undefined if the app is unknown or revoked */
  find(appId: string): Promise<CallingApp | undefined>;
};

// ── Taking calls ─────────────────────────────────────────────────────────────────────────────────────────────────────

/** A trunk by its name; undefined: the calls that are dialled directly. */
export type CallSource = string | undefined;

/** Held across all nodes; left out: as many as come. */
export type TrunkLimits = {
  /** Calls that start in a second; 0.5 is one in two seconds. What one call tries at further gateways is not counted. */
  readonly callsPerSecond?: number;
  /** Calls that hold a channel of the carrier, from their INVITE until nothing of them is on the wire. */
  readonly maxConcurrentCalls?: number;
};

export type TakeRequest = {
  /** 1, 2, … of this process and source: the same again asks for the answer that was lost. */
  readonly takeId: number;
  /** The take was asked for before. */
  readonly isRepeated: boolean;
  readonly source: CallSource;
  /** Undefined: of a source without any. */
  readonly limits: TrunkLimits | undefined;
  /** At most so many, e.g. what this process has room for. */
  readonly wanted: number;
  /** How far ahead starts are given out. */
  readonly horizonMs: number;
};

/** A call that is this process's now, and in how long its INVITE may leave, as the answer was written; negative: it was due. */
export type Grant = {
  readonly call: AcceptedCall;
  readonly startInMs: number;
  /** How far its first event, `queued`, has come. */
  readonly queued: QueuedEvent;
};
export type QueuedEvent = 'unknown' | 'stored' | 'published';

export type Taken = {
  readonly grants: readonly Grant[];
  /** When more could be had; left out: nothing waits, or the trunk is full until a slot is released. */
  readonly retryInMs?: number;
  /** Of the server, from the question to the answer: what the round trip took beyond it was spent under way. */
  readonly tookMs: number;
};

/** What one look at everything that waits finds. */
export type Sweep = {
  /** No process has taken them, and they are not to be dialled any more. */
  readonly expired: readonly AcceptedCall[];
  readonly waiting: ReadonlyMap<CallSource, number>;
  /** This process's by what SQL says, taken some time ago, and not among those that it named. */
  readonly notHere: readonly CallId[];
};

export type CallTakes = {
  /** Takes the calls of a source that have waited longest, each with a slot where the source has limits. */
  take(request: TakeRequest): Promise<Taken>;
  /** Another start for a call that missed its own. */
  nextStart(
    trunk: string,
    intervalMs: number,
  ): Promise<{ readonly startInMs: number; readonly tookMs: number }>;
  /** Frees the slots of legs that are off the wire. */
  release(legIds: readonly string[]): Promise<void>;
  /** Also frees the slots of calls that ended while no process could release them. `here`: calls that this process has. */
  sweep(here: readonly CallId[]): Promise<Sweep>;
};

/** What second legs ask of SQL. */
export type SecondLegTakes = {
  /** False: the app has had so many calls today. */
  countToday(appId: string, mostToday: number, at: Date): Promise<boolean>;
  /** Undefined: the trunk is full. In how long the INVITE may leave, as the answer was written. */
  takeSlot(leg: {
    readonly legId: string;
    readonly callId: CallId;
    readonly trunk: string;
    readonly limits: TrunkLimits;
  }): Promise<{ readonly startInMs: number; readonly tookMs: number } | undefined>;
};

/**
 * Asked when the INVITE is ready: resolves when it may leave, or is not wanted any more; never rejects. An INVITE that is late
 * takes another start, which costs the trunk one: hence `isWanted`.
 */
export type Turn = (isWanted: () => boolean) => Promise<void>;
