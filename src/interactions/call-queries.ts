// The port for reading calls. It covers the interactions view, and single calls with their
// timeline, context, notifications and delivery attempts.

import type { CallContext } from '../calls/contract/call-context.ts';
import type {
  CallFault,
  CallOutcome,
  CallState,
  InteractionStatus,
} from '../calls/contract/call-words.ts';
import type { AmdEventName } from '../calls/detection/amd-event.ts';
import type { CallQuality } from '../calls/life/call-quality.ts';
import type { EndFacts } from '../calls/life/end-facts.ts';
import type { RuleName } from '../calls/rules/rule-words.ts';
import type { LocalDay } from '../lib/local-days.ts';
import type { CallRecording } from './call-recording.ts';

/** The account and bot whose calls the client may read. All other calls are treated as unknown. */
export type CallScope = { readonly accountId: string; readonly botId: string };

/** The calls that an app may read, either for the listed bots or for all the account's bots. */
export type AppScope = { readonly accountId: string; readonly botIds: readonly string[] | 'all' };

export type CallSummary = {
  readonly callId: string;
  readonly sid: string;
  readonly conversationId: string;
  readonly botId: string;
  readonly state: CallState;
  /** The `Status` column of the interactions view. */
  readonly status: InteractionStatus;
  /** The call's place in its trunk's queue. The next call to be dialled has place 1. */
  readonly queuePosition?: number;
  /** The calling rule that the call waits for, and when it is checked again. */
  readonly waitsFor?: { readonly rule: RuleName; readonly until: string };
  /** The calling rule that ended the call, and when it would permit the call. */
  readonly rule?: RuleName;
  readonly notBefore?: string;
  readonly target: string;
  readonly caller: string;
  readonly trunk?: string;
  /** The campaign that the request names. */
  readonly campaign?: string;
  readonly machineDetection: string;
  /** The current verdict. Undefined if detection hasn't decided yet. */
  readonly verdict?: AmdEventName;
  /** The reason for the verdict, e.g. `fax-tone` or `short-greeting`. */
  readonly verdictReason?: string;
  /** True if we have detected a machine's beep. */
  readonly beep?: true;
  readonly outcome?: CallOutcome;
  /** The party that caused the failure. Undefined if the call hasn't failed. */
  readonly fault?: CallFault;
  readonly sipStatus?: number;
  readonly reason?: string;
  readonly reasonCode?: string;
  readonly acceptedAt: string;
  readonly ringingAt?: string;
  readonly answeredAt?: string;
  readonly endedAt?: string;
  /** The identity of whoever was reached, as the carrier stated it. */
  readonly connectedIdentity?: string;
  /** How the call sounded. Undefined until its end, and if no audio arrived. */
  readonly quality?: CallQuality;
} & EndFacts;

export type TimelineEntry = {
  readonly eventId: string;
  readonly eventSequence: number;
  readonly type: string;
  readonly time: string;
  readonly data: unknown;
};

export type CallDetails = CallSummary & {
  readonly metadata: Readonly<Record<string, unknown>>;
  /** Undefined if the call has not been recorded. */
  readonly recording?: CallRecording;
  readonly timeline: readonly TimelineEntry[];
};

export type NotificationView = {
  readonly eventId: string;
  readonly sequence: number;
  readonly state: 'pending' | 'delivered' | 'failed';
  readonly createdAt: string;
  readonly deliveredAt?: string;
  /** When the notification became a dead letter. */
  readonly failedAt?: string;
  readonly failure?: 'expired' | 'gone' | 'forbidden';
  /**
   * When the gateway next tries one of the call's notifications, which it sends in order. Undefined
   * unless this one is pending, and while an attempt is under way.
   */
  readonly nextAttemptAt?: string;
  readonly body: unknown;
  readonly attempts: readonly {
    readonly attempt: number;
    readonly startedAt: string;
    readonly durationMs: number;
    readonly responseStatus?: number;
    readonly error?: string;
    readonly delivered: boolean;
  }[];
  /** Replays of this notification. `by` is the id of the app that requested the replay. */
  readonly replays: readonly { readonly replayedAt: string; readonly by: string }[];
};

export type CallFilter = {
  readonly status?: InteractionStatus;
  readonly state?: CallState;
  readonly outcome?: CallOutcome;
  readonly verdict?: AmdEventName;
  /** The callee's number in E.164 digits. */
  readonly number?: string;
  readonly campaign?: string;
  /** The values of members of the metadata, as text. */
  readonly metadata?: Readonly<Record<string, string>>;
  readonly idempotencyKey?: string;
  /** `call-` and the first digits of the call id's UUID. */
  readonly callIdPrefix?: string;
  readonly acceptedFrom?: Date;
  readonly acceptedTo?: Date;
  /** The previous page's `nextCursor`. Opaque. */
  readonly cursor?: string;
  /** 1 to 200. */
  readonly limit: number;
};

export type CallPage = {
  /** Newest first. */
  readonly calls: readonly CallSummary[];
  /** Omitted if the list is over. A page without calls may have one. */
  readonly nextCursor?: string;
  /**
   * The period of acceptance that was searched. Every call that was accepted in it and matches the
   * filter is on this page. Without `from`, it reaches back to the oldest call, and without `to` up
   * to the newest.
   */
  readonly searched: { readonly from?: string; readonly to?: string };
};

export type SummaryPeriod = {
  /** Both are quarters of an hour. */
  readonly from: Date;
  readonly to: Date;
  /** Decides when days begin. */
  readonly timeZone: string;
};

/** Counts only the calls with this outcome, this status or this current verdict. */
export type SummaryFilter = Pick<CallFilter, 'outcome' | 'status' | 'verdict'>;

export type SummaryRequest = SummaryPeriod & {
  readonly filter: SummaryFilter;
  /** Whether the summary has each quarter of an hour, too. */
  readonly withQuarters: boolean;
};

export type CallCounts = {
  /** All calls, also those that have not ended. */
  readonly accepted: number;
  readonly answered: number;
  /** Ended calls that were over within 6 s of the answer. */
  readonly short: number;
  /** Ended calls by their verdict. */
  readonly people: number;
  readonly machines: number;
  /** Minutes from the answer to the end, over all ended calls. */
  readonly minutes: number;
  /** Ended calls by outcome. Outcomes without calls are omitted. */
  readonly outcomes: Readonly<Partial<Record<CallOutcome, number>>>;
};

export type CallsSummary = {
  readonly from: string;
  readonly to: string;
  readonly timeZone: string;
  readonly total: CallCounts;
  /** The bot with the most calls first. */
  readonly bots: readonly (CallCounts & { readonly botId: string })[];
  /** The trunk with the most calls first. Calls without a trunk have an entry without one. */
  readonly trunks: readonly (CallCounts & { readonly trunk?: string })[];
  /** Each day of the period, also those without calls. */
  readonly days: readonly (CallCounts & { readonly day: LocalDay })[];
  /** Each quarter of an hour that has calls, by its beginning. Undefined unless requested. */
  readonly quarters?: readonly (CallCounts & { readonly from: string })[];
};

export type CallersRequest = SummaryPeriod & {
  /** Whether each caller ID has its counts of each day, too. */
  readonly withDays: boolean;
};

export type CallerCounts = {
  readonly accepted: number;
  readonly answered: number;
  /** Ended calls that were over within 6 s of the answer. */
  readonly short: number;
  readonly blocked: number;
};

/** The caller IDs with the most blocked calls first, then those with the most calls. */
export type CallersSummary = {
  readonly from: string;
  readonly to: string;
  readonly timeZone: string;
  readonly callers: readonly (CallerCounts & {
    /** Without a leading `+`. */
    readonly caller: string;
    /** `blocked` as a share of `accepted`, from 0 to 1. */
    readonly blockedShare: number;
    /** The days that have calls, in order. Undefined unless requested. */
    readonly days?: readonly (CallerCounts & { readonly day: LocalDay })[];
  })[];
  /** Present if there are more caller IDs than the list has room for. */
  readonly more?: true;
};

export type CallQueries = {
  list(scope: CallScope | AppScope, filter: CallFilter): Promise<CallPage | 'bad-cursor'>;
  summary(scope: CallScope | AppScope, request: SummaryRequest): Promise<CallsSummary>;
  callers(scope: CallScope | AppScope, request: CallersRequest): Promise<CallersSummary>;
  /** Reads the state for hang-ups and commands, which must not queue behind other reads. */
  state(scope: CallScope, callId: string): Promise<CallState | undefined>;
  details(scope: CallScope | AppScope, callId: string): Promise<CallDetails | undefined>;
  context(scope: CallScope, callId: string): Promise<CallContext | undefined>;
  notifications(scope: CallScope, callId: string): Promise<readonly NotificationView[] | undefined>;
};
