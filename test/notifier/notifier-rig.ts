// A notifier over a real database. Tests pass it events directly and name the URLs of their calls.

import { randomBytes, randomUUID } from 'node:crypto';
import type { AcceptedCall } from '../../src/calls/call-types.ts';
import type { CallEvent } from '../../src/calls/contract/call-event.ts';
import { createAddressGuard } from '../../src/lib/address-guard.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import type { RetrySchedule } from '../../src/notifier/delivery-rules.ts';
import { NotificationDispatcher } from '../../src/notifier/dispatcher.ts';
import { createSender } from '../../src/notifier/http-sender.ts';
import { createNotificationStore } from '../../src/notifier/notification-store.ts';
import { defaultGateLimits, type GateLimits } from '../../src/notifier/origin-gates.ts';
import { owedFor } from '../../src/notifier/owed.ts';
import type { Recipient, RecipientLookup } from '../../src/notifier/recipients.ts';
import { dayOf } from '../../src/store/days.ts';
import { appendSteps, type WaitingStep } from '../../src/store/outbox/call-appends.ts';
import { eventBuilder, someIdentity } from '../support/call-events.ts';
import { acceptedCall } from '../support/call-records.ts';
import type { TestDatabase } from '../support/databases.ts';

/** Fast enough for a test, in the proportions of the default schedule. */
export const quickSchedule: RetrySchedule = {
  delaysMs: [20, 40, 80],
  thenEveryMs: 100,
  giveUpAfterMs: 3_600_000,
  jitter: 0,
  passRefusedAfterMs: 300,
};

export type NotifierRig = ReturnType<typeof createNotifierRig>;

export type TestNode = {
  /** Stores the events as events of this node's calls. */
  readonly handle: (events: readonly CallEvent[]) => Promise<void>;
  /** Returns the number of calls in memory. */
  queues(): number;
  /** Wakes the notifier: something is owed that no event of this node brought. */
  wake(): void;
  stop(): Promise<void>;
};

export function createNotifierRig(database: Pick<TestDatabase, 'pool'>, schedule = quickSchedule) {
  const secret = `whsec_${randomBytes(32).toString('base64')}`;
  const known = new Map<string, Recipient>();
  const recipients: RecipientLookup = (callIds) => {
    const found = new Map<string, Recipient>();
    for (const callId of callIds) {
      const recipient = known.get(callId);
      if (recipient !== undefined) found.set(callId, recipient);
    }
    return Promise.resolve(found);
  };
  const running: TestNode[] = [];
  const now = () => new Date();
  const start = async (
    options: {
      readonly nodeId?: string;
      readonly allowedNetworks?: readonly string[];
      readonly timeoutMs?: number;
      readonly pollMs?: number;
      /** Whether no other process uses the database. */
      readonly maxRestMs?: number;
      /** Limits that differ from the default. */
      readonly gates?: Partial<GateLimits>;
      /** Whether the node's own lease is held. */
      readonly mayDeliver?: () => boolean;
    } = {},
  ): Promise<TestNode> => {
    const nodeId = options.nodeId ?? 'node-1';
    const ownerId = `${nodeId}/${randomUUID().slice(0, 8)}`;
    const store = createNotificationStore(database.pool, ownerId, schedule);
    const sender = createSender({
      guard: createAddressGuard(options.allowedNetworks ?? ['127.0.0.0/8']),
      // The default time-out is long, so that no attempt fails because the machine is busy.
      timeoutMs: options.timeoutMs ?? 10_000,
      now: Date.now,
    });
    const dispatcher = new NotificationDispatcher(
      {
        store,
        recipients,
        sender,
        mayDeliver: options.mayDeliver ?? (() => true),
        secrets: () => Promise.resolve([secret]),
        schedule,
        now,
        random: Math.random,
        version: '0.0.0-test',
        logger: silentLogger,
      },
      {
        pollMs: options.pollMs ?? 20,
        maxRestMs: options.maxRestMs ?? 0,
        gates: { ...defaultGateLimits, ...options.gates },
      },
    );
    await dispatcher.start();
    const node: TestNode = {
      handle: createHandler(database, ownerId, dispatcher, known),
      queues: () => dispatcher.queues(),
      wake: () => dispatcher.wake(),
      stop: async () => {
        await dispatcher.stop(2_000);
        await sender.close();
      },
    };
    running.push(node);
    return node;
  };
  return {
    secret,
    start,
    /** Creates a call with this notification URL. Undefined if its dial-out request has none. */
    call: (
      notifyUrl: string | undefined,
      {
        notifyHeaders = {},
        accountId = 'acme',
      }: {
        readonly notifyHeaders?: Readonly<Record<string, string>>;
        readonly accountId?: string;
      } = {},
    ) => {
      const identity = someIdentity({ accountId });
      const { appId } = identity;
      known.set(identity.callId, {
        ...{ appId, accountId, notifyHeaders },
        ...(notifyUrl === undefined ? {} : { notifyUrl }),
      });
      return eventBuilder(identity);
    },
    wake: () => {
      for (const node of running) node.wake();
    },
    stop: async () => {
      for (const node of running.splice(0)) await node.stop();
    },
    states: async (): Promise<Readonly<Record<string, string>>> => {
      const result = await database.pool.query<{ event_id: string; state: string }>(
        'select event_id, state from notifications',
      );
      return Object.fromEntries(result.rows.map((row) => [row.event_id, row.state]));
    },
    attempts: async (eventId: string) => {
      const result = await database.pool.query<{
        attempt: number;
        response_status: number | null;
        error: string | null;
        delivered: boolean;
      }>(
        `select attempt, response_status, error, delivered from delivery_attempts where event_id = $1
         order by attempt`,
        [eventId],
      );
      return result.rows;
    },
    lanesLeft: async (): Promise<number> => {
      const result = await database.pool.query<{ count: number }>(
        'select count(*)::integer as count from notification_lanes',
      );
      return result.rows[0]?.count ?? 0;
    },
  };
}

/** Groups the events into one step for each call, as an outbox stores them. */
function createHandler(
  { pool }: Pick<TestDatabase, 'pool'>,
  ownerId: string,
  dispatcher: NotificationDispatcher,
  known: ReadonlyMap<string, Recipient>,
) {
  return async (events: readonly CallEvent[]): Promise<void> => {
    const callIds = [...new Set(events.map(({ callId }) => callId))];
    const steps = callIds.map((callId) =>
      stepOf(
        events.filter((event) => event.callId === callId),
        known,
      ),
    );
    await own(
      pool,
      steps.map(({ call }) => call),
      ownerId,
    );
    const results = await appendSteps(
      {
        ...{ pool, ownerId },
        owedFor: (call, event) => owedFor(call, event, (receiver) => dispatcher.canTake(receiver)),
        publishedThrough: () => undefined,
        now: () => new Date(),
        leaseUntil: (at) => dispatcher.leaseUntil(at),
        passRefusedAfterMs: quickSchedule.passRefusedAfterMs,
      },
      steps,
    );
    for (const [index, { call }] of steps.entries()) {
      const result = results[index];
      if (result?.kind !== 'stored') throw new Error(`a step was not stored: ${result?.kind}`);
      const ofDay = { callId: call.callId, day: dayOf(call.acceptedAt) };
      dispatcher.onStored({ ...result, ...ofDay, isRepeated: false });
    }
  };
}

function stepOf(events: readonly CallEvent[], known: ReadonlyMap<string, Recipient>): WaitingStep {
  const last = events.at(-1);
  if (last === undefined) throw new Error('a step without events');
  const isEnd = last.type === 'completed' || last.type === 'failed';
  const notifyUrl = known.get(last.callId)?.notifyUrl;
  const { request, ...accepted } = acceptedCall();
  const { notifyUrl: _made, ...unnotified } = request;
  const { callId, sid, conversationId, accountId, appId, botId } = last;
  return {
    ...{ isUntaken: false, isRepeated: false },
    call: {
      ...{ ...accepted, callId, sid, conversationId, accountId, appId, botId },
      request: notifyUrl === undefined ? unnotified : { ...unnotified, notifyUrl },
    },
    step: isEnd ? { events: events.slice(0, -1), ending: { event: last } } : { events },
  };
}

/** Inserts the rows of calls that this node owns. */
async function own(
  pool: TestDatabase['pool'],
  calls: readonly AcceptedCall[],
  ownerId: string,
): Promise<void> {
  await pool.query(
    `insert into calls (call_id, sid, conversation_id, account_id, app_id, bot_id, request, state, status, accepted_at,
       dial_before, dial_started_at, owner_id)
     select "callId", sid, "conversationId", "accountId", "appId", "botId", request, 'dialing', 'dialing', "acceptedAt",
       "acceptedAt", "acceptedAt", $2
     from json_to_recordset($1::json) as row("callId" text, sid text, "conversationId" text, "accountId" text, "appId" text,
       "botId" text, request jsonb, "acceptedAt" timestamptz)
     on conflict (call_id) do update set owner_id = excluded.owner_id`,
    [JSON.stringify(calls), ownerId],
  );
}

/** Returns every notified event of a call that a person answers, and two that are not notified. */
export function personCall(call: ReturnType<typeof eventBuilder>): readonly CallEvent[] {
  return [
    call.dialing(),
    call.ringing(),
    call.answered(),
    call.amd('amd_human_detected'),
    call.amd('amd_stopped'),
    call.completed(),
  ];
}
