// Ports between the HTTP edge, the dial-out work and SQL: submitting a request, checking its route,
// storing and taking calls, and finding the call of a command.

import type { AcceptedCall, DialoutRequest, DialTarget } from './call-types.ts';
import type { Command, CommandReply } from './contract/command.ts';
import type { CallId } from './contract/identity.ts';
import type { AppLimits } from './target/app-limits.ts';
import type { NumberReading } from './target/number-reading.ts';

/** A validated request. The intake fills in what the caller omitted. */
export type SubmittedRequest = Omit<DialoutRequest, 'queueTimeoutMs'> & {
  readonly queueTimeoutMs?: number;
};

export type Idempotency = { readonly key: string; readonly requestHash: string };

export type Submission = {
  readonly appId: string;
  readonly accountId: string;
  readonly botId: string;
  readonly request: SubmittedRequest;
  /**
   * Headers that the caller wants on its notifications. They are encrypted before they are stored.
   */
  readonly notifyHeaders?: Readonly<Record<string, string>>;
  readonly idempotency?: Idempotency;
  /** Limits of the app. Default: no limits. */
  readonly limits?: AppLimits;
  readonly remarks?: DialoutRemarks;
};

/** Remarks in an answer, in addition to the ids. Each is present only if it applies. */
export type DialoutRemarks = {
  /** URI of the dialled number, if the target was written without `+`. */
  readonly target?: string;
  /** The same for the number in `bridge`. */
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
  /** The same request came before with this idempotency key. */
  | { readonly kind: 'replayed'; readonly answer: DialoutAnswer }
  /** Another request came before with this idempotency key. */
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
   * Whether the request was accepted is not known, and the call may be dialled. Either the answer
   * of the database was lost, or the earlier answer to the key cannot be read.
   */
  | { readonly kind: 'unknown'; readonly reason: string; readonly retryAfterS: number };

export type Intake = { submit(submission: Submission): Promise<SubmitResult> };

/**
 * Checks at the edge that a target can be routed, so that a bad request is answered with 400
 * instead of becoming a failed call.
 */
export type RoutePlanner = {
  plan(
    target: DialTarget,
    trunk: string | undefined,
    /**
     * The account that must be allowed to use the trunk. The default trunk is that of the account,
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
  /** Whether a trunk passes on this header of an application. Carriers trust such headers. */
  passes(trunk: string, headerName: string): boolean;
};

export type CommandRouting = {
  /**
   * Runs a command on its call, whichever process has the call. `askedBy` names the sender in the
   * capture of the call.
   *
   * @returns undefined if the process of the call did not answer, so that it is not known whether
   * the command was done
   */
  run(callId: CallId, command: Command, askedBy?: string): Promise<CommandReply | undefined>;
};

// ── Storing calls ────────────────────────────────────────────────────────────────────────────────

/** The notification of `queued`, as it is signed and sent. */
export type QueuedNotification = { readonly origin: string; readonly body: string };

/** What SQL stores or checks together with the call. */
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
   * Certainly not stored. `isKeyNew` is true if the idempotency key did not come before, and
   * omitted if that is not known.
   */
  | { readonly kind: 'not-stored'; readonly cause: unknown; readonly isKeyNew?: true };

export type CallIntake = {
  /**
   * Stores a call, once for each idempotency key (kept for 24 h). The call is durable when this
   * resolves with `accepted`.
   *
   * @throws Error if it is not known whether the call was stored
   */
  accept(call: AcceptedCall, extra: AcceptExtra): Promise<AcceptResult>;
  /**
   * Returns what was answered to the key before.
   *
   * @returns undefined if the key did not come, or has expired
   * @throws Error if that is not known
   */
  earlier(call: AcceptedCall, idempotency: Idempotency): Promise<EarlierResult | undefined>;
};

/** The app that placed a call, as far as commands to the call depend on it. */
export type CallingApp = NumberReading & {
  readonly limits?: AppLimits;
};

/** Finds apps. Rejects while SQL does not answer. */
export type AppLookup = {
  /** @returns undefined if the app is unknown or revoked */
  find(appId: string): Promise<CallingApp | undefined>;
};

// ── Taking calls ─────────────────────────────────────────────────────────────────────────────────

/** The name of a trunk. Undefined for the calls that are dialled directly. */
export type CallSource = string | undefined;

/** Limits of a trunk across all nodes. Default of each: no limit. */
export type TrunkLimits = {
  /**
   * Calls that start each second. 0.5 is one call every two seconds. Attempts of one call over
   * further gateways do not count.
   */
  readonly callsPerSecond?: number;
  /**
   * Calls that hold a channel of the carrier, from their INVITE until nothing of them is on the
   * wire.
   */
  readonly maxConcurrentCalls?: number;
};

export type TakeRequest = {
  /**
   * 1, 2, … for each process and source. Repeating a number asks again for an answer that was lost.
   */
  readonly takeId: number;
  /** Whether this take was requested before. */
  readonly isRepeated: boolean;
  readonly source: CallSource;
  /** Undefined if the source has no limits. */
  readonly limits: TrunkLimits | undefined;
  /** The largest number of calls to take, e.g. what this process has room for. */
  readonly wanted: number;
  /** How far ahead of now starts may be granted. */
  readonly horizonMs: number;
};

/**
 * A call that now belongs to this process. `startInMs`: when its INVITE may leave, counted from
 * when SQL wrote the answer; negative if it was due before.
 */
export type Grant = {
  readonly call: AcceptedCall;
  readonly startInMs: number;
  /** How far the first event of the call, `queued`, has come. */
  readonly queued: QueuedEvent;
};
export type QueuedEvent = 'unknown' | 'stored' | 'published';

export type Taken = {
  readonly grants: readonly Grant[];
  /**
   * When to ask again. Omitted if nothing waits, or if the trunk is full until a slot is released.
   */
  readonly retryInMs?: number;
  /**
   * Time that the server took from the question to the answer. The rest of the round trip was spent
   * on the network.
   */
  readonly tookMs: number;
};

/** The result of one sweep over all waiting calls. */
export type Sweep = {
  /** Calls that no process has taken and that are too late to be dialled. */
  readonly expired: readonly AcceptedCall[];
  readonly waiting: ReadonlyMap<CallSource, number>;
  /**
   * Calls that SQL assigned to this process some time ago, and that the process did not name as its
   * own.
   */
  readonly notHere: readonly CallId[];
};

export type CallTakes = {
  /**
   * Takes the calls of a source that have waited longest, each with a slot if the source has
   * limits.
   */
  take(request: TakeRequest): Promise<Taken>;
  /** Grants another start to a call that missed its own. */
  nextStart(
    trunk: string,
    intervalMs: number,
  ): Promise<{ readonly startInMs: number; readonly tookMs: number }>;
  /** Frees the slots of legs that are off the wire. */
  release(legIds: readonly string[]): Promise<void>;
  /**
   * Finds what is left over. It also frees the slots of calls that ended while no process could
   * release them. `here`: the calls of this process.
   */
  sweep(here: readonly CallId[]): Promise<Sweep>;
};

/** What second legs need from SQL. */
export type SecondLegTakes = {
  /**
   * Counts a second leg of the app for today.
   *
   * @returns false if the app has reached its limit for today
   */
  countToday(appId: string, mostToday: number, at: Date): Promise<boolean>;
  /**
   * Takes a slot of the trunk. `startInMs`: when the INVITE may leave, counted from when SQL wrote
   * the answer.
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
 * Called when the INVITE is ready. Resolves when the INVITE may leave or is not wanted any more;
 * never rejects. An INVITE that is late takes another start, and the trunk loses one. `isWanted`
 * prevents that for a call that is over.
 */
export type Turn = (isWanted: () => boolean) => Promise<void>;
