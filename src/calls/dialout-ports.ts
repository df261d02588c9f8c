// Ports between the HTTP API, dial-out and the database. A request is submitted, its route is
// checked, and its call is stored. A process then takes (claims) the call, and commands are routed
// to that process.

import type { AcceptedCall, DialoutRequest, DialTarget } from './call-types.ts';
import type { Command, CommandReply } from './contract/command.ts';
import type { CallId } from './contract/identity.ts';
import type { RuleRefusal } from './rules/refusal.ts';
import type { SuppressingApp, Suppression } from './rules/suppression.ts';
import type { AppLimits } from './target/app-limits.ts';
import type { NumberReading } from './target/number-reading.ts';

/** A validated request. The intake fills in whatever the client omitted. */
export type SubmittedRequest = Omit<DialoutRequest, 'queueTimeoutMs'> & {
  readonly queueTimeoutMs?: number;
};

export type Idempotency = { readonly key: string; readonly requestHash: string };

export type Submission = {
  readonly appId: string;
  readonly accountId: string;
  readonly botId: string;
  readonly request: SubmittedRequest;
  /** Headers to send with each notification. They're encrypted before they are stored. */
  readonly notifyHeaders?: Readonly<Record<string, string>>;
  readonly idempotency?: Idempotency;
  /** The app's limits. Default: no limits. */
  readonly limits?: AppLimits;
  readonly remarks?: DialoutRemarks;
};

/**
 * Optional fields of the response, in addition to the ids. A field is omitted if it doesn't apply.
 */
export type DialoutRemarks = {
  /** URI of the dialled number. Present if the client wrote the target without `+`. */
  readonly target?: string;
  /** URI of the number in `bridge`. Present if the client wrote that number without `+`. */
  readonly bridge?: { readonly to: string };
  /** Paths of fields that aren't in any schema. */
  readonly ignored?: readonly string[];
};

/** The response to a dial-out request. It is stored with the idempotency key. */
export type DialoutAnswer = DialoutRemarks & {
  readonly sid: string;
  readonly callId: string;
  readonly conversationId: string;
};

export type SubmitResult =
  | { readonly kind: 'accepted'; readonly answer: DialoutAnswer }
  /** An earlier request with this idempotency key has already been accepted. */
  | { readonly kind: 'replayed'; readonly answer: DialoutAnswer }
  /** The idempotency key has already been used for a different request. */
  | { readonly kind: 'conflict' }
  | { readonly kind: 'full'; readonly retryAfterS: number }
  /** The app's limits don't allow this target. */
  | { readonly kind: 'target-forbidden' }
  | {
      readonly kind: 'limit-reached';
      readonly limit: 'callsAtOnce' | 'callsPerDay';
      readonly retryAfterS: number;
    }
  /**
   * The request wasn't accepted, because the process is shutting down or can't reach the database.
   */
  | { readonly kind: 'unavailable'; readonly reason: string; readonly retryAfterS: number }
  /**
   * We can't tell whether the request was accepted, so the call may still be dialled. Either the
   * database's reply was lost, or the earlier response for the key can't be read.
   */
  | { readonly kind: 'unknown'; readonly reason: string; readonly retryAfterS: number };

export type Intake = { submit(submission: Submission): Promise<SubmitResult> };

/**
 * Checks that a target can be routed while the HTTP request is still open. The client then gets a
 * 400 response for a bad target, rather than a call that fails later.
 */
export type RoutePlanner = {
  plan(
    target: DialTarget,
    trunk: string | undefined,
    /**
     * The account must be allowed to use the trunk. If `trunk` is undefined, the account's own
     * default trunk is used, if it has one.
     */
    accountId: string,
    /** The caller ID, which the trunk may have to rewrite. Default: not checked. */
    caller?: string,
  ):
    | {
        readonly ok: true;
        /** The trunk that will carry the call. Absent for a direct `sip:` call. */
        readonly trunk?: string;
      }
    | {
        readonly ok: false;
        readonly field: 'target' | 'trunk' | 'caller';
        readonly message: string;
      };
  /**
   * Whether a trunk passes on this header if an application sets it. Carriers trust some headers,
   * so the trunk must list them.
   */
  passes(trunk: string, headerName: string): boolean;
};

export type CommandRouting = {
  /**
   * Runs a command on its call, even if another process owns the call. `askedBy` names the sender
   * in the call's capture.
   *
   * @returns undefined if the owner didn't reply, in which case the command may or may not have run
   */
  run(callId: CallId, command: Command, askedBy?: string): Promise<CommandReply | undefined>;
};

export type Suppressing = {
  /**
   * Suppresses an address, and cancels the account's unanswered calls to it. Resolves when they are
   * off the wire, or after 10 s.
   *
   * @returns the calls that may still ring
   */
  suppress(
    app: SuppressingApp,
    address: string,
    suppression: Suppression,
  ): Promise<readonly CallId[]>;
  /**
   * Stores suppressions by address, without cancelling calls.
   *
   * @returns the number of suppressions that were replaced
   */
  store(app: SuppressingApp, suppressions: ReadonlyMap<string, Suppression>): Promise<number>;
  /**
   * Cancels the account's unanswered calls to a suppressed address, or to all of them after an
   * import has stored many. Resolves like `suppress`.
   */
  cancelSuppressed(accountId: string, address?: string): Promise<readonly CallId[]>;
};

// ── Storing calls ────────────────────────────────────────────────────────────────────────────────

/** The receiver of the `queued` notification. */
export type QueuedNotification = { readonly origin: string };

/** Data to store or check in the same transaction as the call. */
export type AcceptExtra = Pick<
  Submission,
  'notifyHeaders' | 'idempotency' | 'limits' | 'remarks'
> & {
  /** Omitted if the request doesn't subscribe to `queued`. */
  readonly queuedNotification?: QueuedNotification;
  /**
   * Begins a take for as many calls of the same source as the statement stores, so that they need
   * no statement of their own. Omitted if calls are only stored.
   *
   * @returns undefined if this process can't take a call now, or another take comes first
   */
  readonly takeAlong?: (count: number) => TakeAlong | undefined;
};

export type EarlierResult = Extract<SubmitResult, { kind: 'replayed' | 'conflict' }>;

export type LimitName = 'target' | 'callsAtOnce' | 'callsPerDay';

export type AcceptResult =
  /** `isTaken` is true if this process has taken the call in the same statement. */
  | { readonly kind: 'accepted'; readonly isTaken?: true }
  | EarlierResult
  /** The app has reached one of its limits. Nothing was stored. */
  | { readonly kind: 'refused'; readonly limit: LimitName }
  /**
   * Definitely not stored. `isKeyNew` is true if the idempotency key has never been used before,
   * and omitted if we don't know.
   */
  | { readonly kind: 'not-stored'; readonly cause: unknown; readonly isKeyNew?: true };

export type CallIntake = {
  /**
   * Stores a call, at most once per idempotency key (kept until 24 h after the end of its
   * call). Once this resolves with `accepted`, the call is durable.
   *
   * @throws Error if it is not known whether the call was stored
   */
  accept(call: AcceptedCall, extra: AcceptExtra): Promise<AcceptResult>;
  /**
   * Returns the earlier response for the key.
   *
   * @returns undefined if the key is new or has expired
   * @throws Error if the key can't be looked up
   */
  earlier(call: AcceptedCall, idempotency: Idempotency): Promise<EarlierResult | undefined>;
};

/** Settings of the app that placed a call, limited to those that affect commands to the call. */
export type CallingApp = NumberReading & {
  readonly limits?: AppLimits;
};

/** Looks up apps. Rejects if the database doesn't respond. */
export type AppLookup = {
  /** @returns undefined if the app is unknown or revoked */
  find(appId: string): Promise<CallingApp | undefined>;
};

// ── Taking calls ─────────────────────────────────────────────────────────────────────────────────

/** The trunk's name, or undefined for calls dialled without a trunk. */
export type CallSource = string | undefined;

/** A trunk's limits across all nodes. Default of each: no limit. */
export type TrunkLimits = {
  /**
   * Maximum rate of new calls per second, e.g. 0.5 for one call every two seconds. A call that
   * fails over to another gateway counts once.
   */
  readonly callsPerSecond?: number;
  /**
   * Number of calls that may occupy a carrier channel at the same time. A call occupies its channel
   * from the INVITE until its last transaction or dialog has ended on the wire.
   */
  readonly maxConcurrentCalls?: number;
};

export type TakeRequest = {
  /**
   * Counts 1, 2, … per process and source. A take whose reply was lost is requested again under the
   * same number.
   */
  readonly takeId: number;
  readonly isRepeated: boolean;
  readonly source: CallSource;
  /** Undefined if the source has no limits. */
  readonly limits: TrunkLimits | undefined;
  /** Maximum number of calls to take, e.g. as many as this process still has room for. */
  readonly wanted: number;
  /** How far in the future a granted start may lie. */
  readonly horizonMs: number;
};

/**
 * A call that now belongs to this process. `startInMs` is the delay until its INVITE may be sent,
 * measured from the moment at which the database wrote its reply. The delay is negative if the
 * start was already due.
 */
export type Grant = {
  readonly call: AcceptedCall;
  readonly startInMs: number;
  /** How far the call's first event, `queued`, has got. */
  readonly queued: QueuedEvent;
  /** Set if a calling rule refuses the call. It must not be dialled, but ended. */
  readonly refusal?: RuleRefusal;
};
export type QueuedEvent = 'unknown' | 'stored' | 'published';

export type Taken = {
  readonly grants: readonly Grant[];
  /**
   * Delay before the next take. Omitted if no calls are waiting, or if the trunk is full until one
   * of its slots is released.
   */
  readonly retryInMs?: number;
  /** Time that the database spent on the request. The rest of the round trip was network time. */
  readonly tookMs: number;
};

/**
 * A take that is part of the statement that stores calls. Exactly one of the functions must be
 * called, once.
 */
export type TakeAlong = {
  readonly request: TakeRequest;
  /** Starts the calls. Call this after all that wait for them to be stored have been told. */
  readonly taken: (taken: Taken) => void;
  /** Nothing was stored or taken. */
  readonly undone: () => void;
  /** The database may have taken calls. */
  readonly lost: (cause: unknown) => void;
};

/** `refusal` names the calling rule that the call waited for, if any. */
export type ExpiredCall = { readonly call: AcceptedCall; readonly refusal?: RuleRefusal };

/** The result of one sweep over all waiting calls. */
export type Sweep = {
  /** Calls that reached their queue time-out before any process took them. */
  readonly expired: readonly ExpiredCall[];
  readonly waiting: ReadonlyMap<CallSource, number>;
  /** True if any calls wait for a calling rule. They don't count as waiting. */
  readonly isHolding: boolean;
  /**
   * Calls that have been assigned to this process for some time, although it doesn't know about
   * them.
   */
  readonly notHere: readonly CallId[];
};

export type CallTakes = {
  /**
   * Claims the source's calls that have been waiting longest. If the source has limits, each call
   * is also given a slot.
   */
  take(request: TakeRequest): Promise<Taken>;
  /** Grants a new start to a call that missed its first one. */
  nextStart(
    trunk: string,
    intervalMs: number,
  ): Promise<{ readonly startInMs: number; readonly tookMs: number }>;
  /** Frees the slots of legs that have ended on the wire. */
  release(legIds: readonly string[]): Promise<void>;
  /**
   * Finds waiting, expired and unknown calls. Releases calls that waited for a calling rule and may
   * now be checked again. Also frees slots that were left behind when a call
   * ended and no process could release its slot. `here` lists the calls that this process knows
   * about.
   */
  sweep(here: readonly CallId[]): Promise<Sweep>;
};

/** Database operations for second legs. */
export type SecondLegTakes = {
  /**
   * Counts a second leg against the app's daily limit.
   *
   * @returns false if the app has already reached that limit
   */
  countToday(appId: string, maxToday: number, at: Date): Promise<boolean>;
  /**
   * Reserves a slot on the trunk. `startInMs` is the delay until the INVITE may be sent, measured
   * from the moment at which the database wrote its reply.
   *
   * @returns undefined if the trunk is full
   */
  takeSlot(leg: {
    readonly legId: string;
    readonly callId: CallId;
    readonly trunk: string;
    readonly limits: TrunkLimits;
  }): Promise<{ readonly startInMs: number; readonly tookMs: number } | undefined>;
};

/**
 * Waits for a call's turn on its trunk. Called when the INVITE is ready. Resolves when the INVITE
 * may be sent, or when the call no longer wants it. Never rejects. If the INVITE is ready too late,
 * it needs another start, which uses up one more of the trunk's starts. `isWanted` avoids that if
 * the call has already ended.
 */
export type Turn = (isWanted: () => boolean) => Promise<void>;
