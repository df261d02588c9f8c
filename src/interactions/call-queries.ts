// Reading calls: the interactions view, one call with its timeline, its context, its notifications and their attempts.

import type { CallContext } from '../calls/contract/call-context.ts';
import type {
  CallFault,
  CallOutcome,
  CallState,
  InteractionStatus,
} from '../calls/contract/call-words.ts';
import type { AmdEventName } from '../calls/detection/amd-event.ts';

/** Whose calls may be seen: an account and one of its bots. Anything else is as if it did not exist. */
export type CallScope = { readonly accountId: string; readonly botId: string };

/** The same of an app: these bots, or every one of the account. */
export type AppScope = { readonly accountId: string; readonly botIds: readonly string[] | 'all' };

export type CallSummary = {
  readonly callId: string;
  readonly sid: string;
  readonly conversationId: string;
  readonly botId: string;
  readonly state: CallState;
  /** The Status column. */
  readonly status: InteractionStatus;
  /** While it is queued: 1 is the next one of its trunk. */
  readonly queuePosition?: number;
  readonly target: string;
  readonly caller: string;
  readonly trunk?: string;
  readonly machineDetection: string;
  /** What detection decided, so far. */
  readonly verdict?: AmdEventName;
  /** Why, as the event of the verdict says it: `fax-tone`, `short-greeting`, … */
  readonly verdictReason?: string;
  /** A machine's beep was heard. */
  readonly beep?: true;
  readonly outcome?: CallOutcome;
  /** Of a call that came to nothing. */
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
  /** Of a dead letter. */
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
  /** Who had it sent again. */
  readonly replays: readonly { readonly replayedAt: string; readonly by: string }[];
};

export type CallFilter = {
  readonly status?: InteractionStatus;
  readonly state?: CallState;
  readonly outcome?: CallOutcome;
  readonly idempotencyKey?: string;
  /** `call-` and how the UUID of the id begins. */
  readonly callIdPrefix?: string;
  readonly acceptedFrom?: Date;
  readonly acceptedTo?: Date;
  /** Opaque, of the page before. */
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
  /** For hang-ups and commands, which wait for no other read. */
  state(scope: CallScope, callId: string): Promise<CallState | undefined>;
  details(scope: CallScope | AppScope, callId: string): Promise<CallDetails | undefined>;
  context(scope: CallScope, callId: string): Promise<CallContext | undefined>;
  notifications(scope: CallScope, callId: string): Promise<readonly NotificationView[] | undefined>;
};
