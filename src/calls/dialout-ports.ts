// Ports between the HTTP API, dial-out and SQL: submit a request, check its route, store and take
// calls, and route a command to its call.

import type { AcceptedCall, DialoutRequest, DialTarget } from './call-types.ts';
import type { Command, CommandReply } from './contract/command.ts';
import type { CallId } from './contract/identity.ts';
import type { AppLimits } from './target/app-limits.ts';
import type { NumberReading } from './target/number-reading.ts';

/** A validated request. The intake fills in members that the client omitted. */
export type SubmittedRequest = Omit<DialoutRequest, 'queueTimeoutMs'> & {
  readonly queueTimeoutMs?: number;
};

export type Idempotency = { readonly key: string; readonly requestHash: string };

export type Submission = {
  readonly appId: string;
  readonly accountId: string;
  readonly botId: string;
  readonly request: SubmittedRequest;
  /** Headers to send with each notification. They are encrypted before they are stored. */
  readonly notifyHeaders?: Readonly<Record<string, string>>;
  readonly idempotency?: Idempotency;
  /** Limits of the app. Default: no limits. */
  readonly limits?: AppLimits;
  readonly remarks?: DialoutRemarks;
};

/** Optional members of the answer, in addition to the ids. Each is present only if it applies. */
export type DialoutRemarks = {
  /** URI of the dialled number. Present if the target was written without `+`. */
  readonly target?: string;
  /** URI of the number in `bridge`. Present if that number was written without `+`. */
  readonly bridge?: { readonly to: string };
  /** Paths of members that no schema knows. */
  readonly ignored?: readonly string[];
};

/** The answer to a dial-out request. Stored with its idempotency key. */
export type DialoutAnswer = DialoutRemarks & {
  readonly sid: string;
  readonly callId: string;
  readonly conversationId: string;
};

export type SubmitResult =
  | { readonly kind: 'accepted'; readonly answer: DialoutAnswer }
  /** This request was already accepted under its idempotency key. */
  | { readonly kind: 'replayed'; readonly answer: DialoutAnswer }
  /** The idempotency key was already used for a different request. */
  | { readonly kind: 'conflict' }
  | { readonly kind: 'full'; readonly retryAfterS: number }
  /** The limits of the app do not allow this target. */
  | { readonly kind: 'target-forbidden' }
  | {
      readonly kind: 'limit-reached';
      readonly limit: 'callsAtOnce' | 'callsPerDay';
      readonly retryAfterS: number;
    }
  /** Nothing was accepted, because the process is stopping or the database is unreachable. */
  | { readonly kind: 'unavailable'; readonly reason: string; readonly retryAfterS: number }
  /**
   * It is not known whether the request was accepted, so the call may still be dialled. Either the
   * reply of the database was lost, or the earlier answer for the key cannot be read.
   */
  | { readonly kind: 'unknown'; readonly reason: string; readonly retryAfterS: number };

export type Intake = { submit(submission: Submission): Promise<SubmitResult> };

/**
 * Checks that a target can be routed while the HTTP request is still open. A bad target then gets a
 * 400 instead of becoming a failed call.
 */
export type RoutePlanner = {
  plan(
    target: DialTarget,
    trunk: string | undefined,
    /**
     * The account must be allowed to use the trunk. Without `trunk`, its own default trunk is used
     * if it has one.
     */
    accountId: string,
  ):
    | {
        readonly ok: true;
        /** The trunk that will carry the call. Absent for a direct `sip:` call. */
        readonly trunk?: string;
      }
    | { readonly ok: false; readonly field: 'target' | 'trunk'; readonly message: string };
  /**
   * Whether a trunk passes on this header when an application sets it. Carriers trust such headers.
   */
  passes(trunk: string, headerName: string): boolean;
};

export type CommandRouting = {
  /**
   * Runs a command on its call, in whichever process owns the call. `askedBy` names the sender in
   * the call's capture.
   *
   * @returns undefined if the owner did not answer, so it is not known whether the command ran
   */
  run(callId: CallId, command: Command, askedBy?: string): Promise<CommandReply | undefined>;
};

// ── Storing calls ────────────────────────────────────────────────────────────────────────────────

/** The notification of `queued`, as it is signed and sent. */
export type QueuedNotification = { readonly origin: string; readonly body: string };

/** Data that SQL stores or checks in the same transaction as the call. */
export type AcceptExtra = Pick<
  Submission,
  'notifyHeaders' | 'idempotency' | 'limits' | 'remarks'
> & {
  /** Omitted if the request does not select `queued`. */
  readonly queuedNotification?: QueuedNotification;
};

export type EarlierResult = Extract<SubmitResult, { kind: 'replayed' | 'conflict' }>;

export type LimitName = 'target' | 'callsAtOnce' | 'callsPerDay';

export type AcceptResult =
  | { readonly kind: 'accepted' }
  | EarlierResult
  /** A limit of the app is reached. Nothing was stored. */
  | { readonly kind: 'refused'; readonly limit: LimitName }
  /**
   * Certainly not stored. `isKeyNew` is true if the idempotency key was never used before, and
   * omitted if that is not known.
   */
  | { readonly kind: 'not-stored'; readonly cause: unknown; readonly isKeyNew?: true };

export type CallIntake = {
  /**
   * Stores a call, at most once per idempotency key (kept for 24 h). The call is durable when this
   * resolves with `accepted`.
   *
   * @throws Error if it is not known whether the call was stored
   */
  accept(call: AcceptedCall, extra: AcceptExtra): Promise<AcceptResult>;
  /**
   * Returns the earlier answer for the key.
   *
   * @returns undefined if the key is new or has expired
   * @throws Error if the key cannot be looked up
   */
  earlier(call: AcceptedCall, idempotency: Idempotency): Promise<EarlierResult | undefined>;
};

/** The settings of the app that placed a call, as far as commands to the call depend on them. */
export type CallingApp = NumberReading & {
  readonly limits?: AppLimits;
};

/** Looks up apps. Rejects if SQL does not answer. */
export type AppLookup = {
  /** @returns undefined if the app is unknown or revoked */
  find(appId: string): Promise<CallingApp | undefined>;
};

// ── Taking calls ─────────────────────────────────────────────────────────────────────────────────

/** The name of a trunk, or undefined for calls that are dialled without a trunk. */
export type CallSource = string | undefined;

/** Limits of a trunk across all nodes. Default of each: no limit. */
export type TrunkLimits = {
  /**
   * Calls that may start per second. 0.5 means one call every two seconds. A call that fails over
   * to another gateway counts once.
   */
  readonly callsPerSecond?: number;
  /**
   * Calls that may hold a carrier channel at the same time. A call holds one from its INVITE until
   * no transaction or dialog of it is on the wire.
   */
  readonly maxConcurrentCalls?: number;
};

export type TakeRequest = {
  /** Counts 1, 2, … per process and source. A repeated number asks again for a lost answer. */
  readonly takeId: number;
  /** Whether this is a repeat of an earlier take. */
  readonly isRepeated: boolean;
  readonly source: CallSource;
  /** Undefined if the source has no limits. */
  readonly limits: TrunkLimits | undefined;
  /** Maximum number of calls to take, e.g. the room in this process. */
  readonly wanted: number;
  /** How far in the future a granted start may lie. */
  readonly horizonMs: number;
};

/**
 * A call that now belongs to this process. `startInMs`: when its INVITE may leave, counted from the
 * moment SQL wrote the answer. Negative if the start was already due.
 */
export type Grant = {
  readonly call: AcceptedCall;
  readonly startInMs: number;
  /** Progress of the call's first event, `queued`. */
  readonly queued: QueuedEvent;
};
export type QueuedEvent = 'unknown' | 'stored' | 'published';

export type Taken = {
  readonly grants: readonly Grant[];
  /**
   * Delay before the next take. Omitted if no call waits, or if the trunk is full until a slot is
   * released.
   */
  readonly retryInMs?: number;
  /**
   * Time that the SQL server spent on the request. The rest of the round trip was spent on the
   * network.
   */
  readonly tookMs: number;
};

/** The result of one sweep over all waiting calls. */
export type Sweep = {
  /** Calls that no process took before their queue time-out. */
  readonly expired: readonly AcceptedCall[];
  readonly waiting: ReadonlyMap<CallSource, number>;
  /**
   * Calls that SQL assigned to this process some time ago although the process does not know them.
   */
  readonly notHere: readonly CallId[];
};

export type CallTakes = {
  /**
   * Takes the longest-waiting calls of a source. Each call gets a slot if the source has limits.
   */
  take(request: TakeRequest): Promise<Taken>;
  /** Grants a new start to a call that missed its first one. */
  nextStart(
    trunk: string,
    intervalMs: number,
  ): Promise<{ readonly startInMs: number; readonly tookMs: number }>;
  /** Frees the slots of legs that are off the wire. */
  release(legIds: readonly string[]): Promise<void>;
  /**
   * Finds waiting, expired and unknown calls. Also frees the slots of calls that ended while no
   * process could release them. `here`: the calls that this process knows.
   */
  sweep(here: readonly CallId[]): Promise<Sweep>;
};

/** SQL operations for second legs. */
export type SecondLegTakes = {
  /**
   * Counts a second leg against the app's limit for today.
   *
   * @returns false if the app has reached its limit for today
   */
  countToday(appId: string, mostToday: number, at: Date): Promise<boolean>;
  /**
   * Takes a slot of the trunk. `startInMs`: when the INVITE may leave, counted from the moment SQL
   * wrote the answer.
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
 * Called when the INVITE is ready. Resolves when the INVITE may leave or is no longer wanted. Never
 * rejects. A late INVITE takes another start, which costs the trunk one start. `isWanted` avoids
 * that cost for a call that has ended.
 */
export type Turn = (isWanted: () => boolean) => Promise<void>;
