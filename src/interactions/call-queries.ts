// Reads of calls: the interactions view, one call with its timeline, its context, and its
// notifications with their attempts.

import type { CallContext } from '../calls/contract/call-context.ts';
import type {
  CallFault,
  CallOutcome,
  CallState,
  InteractionStatus,
} from '../calls/contract/call-words.ts';
import type { AmdEventName } from '../calls/detection/amd-event.ts';

/** The account and bot whose calls may be read. Other calls appear not to exist. */
export type CallScope = { readonly accountId: string; readonly botId: string };

/** The calls that an app may read: those of the listed bots, or of all bots of the account. */
export type AppScope = { readonly accountId: string; readonly botIds: readonly string[] | 'all' };

export type CallSummary = {
  readonly callId: string;
  readonly sid: string;
  readonly conversationId: string;
  readonly botId: string;
  readonly state: CallState;
  /** The Status column. */
  readonly status: InteractionStatus;
  /** The place of a queued call. 1 is the next call of its trunk. */
  readonly queuePosition?: number;
  readonly target: string;
  readonly caller: string;
  readonly trunk?: string;
  readonly machineDetection: string;
  /** What detection has decided so far. */
  readonly verdict?: AmdEventName;
  /** The reason in the verdict's event: `fax-tone`, `short-greeting`, … */
  readonly verdictReason?: string;
  /** True if a machine's beep was heard. */
  readonly beep?: true;
  readonly outcome?: CallOutcome;
  /** The cause of a call that failed. */
  readonly fault?: CallFault;
  readonly sipStatus?: number;
  readonly reason?: string;
  readonly reasonCode?: string;
  readonly acceptedAt: string;
  readonly ringingAt?: string;
  readonly answeredAt?: string;
  readonly endedAt?: string;
};

export type TimelineEntry = {
  readonly eventId: string;
  readonly eventSequence: number;
  readonly type: string;
  readonly time: string;
  readonly data: unknown;
};

export type CallDetails = CallSummary & {
  readonly metadata: Readonly<Record<string, unknown>>;
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
  readonly body: unknown;
  readonly attempts: readonly {
    readonly attempt: number;
    readonly startedAt: string;
    readonly durationMs: number;
    readonly responseStatus?: number;
    readonly error?: string;
    readonly delivered: boolean;
  }[];
  /** Replays of the notification, with the app that asked for each. */
  readonly replays: readonly { readonly replayedAt: string; readonly by: string }[];
};

export type CallFilter = {
  readonly status?: InteractionStatus;
  readonly state?: CallState;
  readonly outcome?: CallOutcome;
  readonly idempotencyKey?: string;
  /** `call-` and the first digits of the id's UUID. */
  readonly callIdPrefix?: string;
  readonly acceptedFrom?: Date;
  readonly acceptedTo?: Date;
  /** Opaque: the `nextCursor` of the previous page. */
  readonly cursor?: string;
  /** 1 to 200. */
  readonly limit: number;
};

export type CallQueries = {
  list(
    scope: CallScope | AppScope,
    filter: CallFilter,
  ): Promise<
    { readonly calls: readonly CallSummary[]; readonly nextCursor?: string } | 'bad-cursor'
  >;
  /** For hang-ups and commands, which do not wait for other reads. */
  state(scope: CallScope, callId: string): Promise<CallState | undefined>;
  details(scope: CallScope | AppScope, callId: string): Promise<CallDetails | undefined>;
  context(scope: CallScope, callId: string): Promise<CallContext | undefined>;
  notifications(scope: CallScope, callId: string): Promise<readonly NotificationView[] | undefined>;
};
