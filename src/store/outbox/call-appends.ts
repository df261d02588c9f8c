// Converts steps (a call's new events and the state that they lead to) into rows for
// `appendStatement`, and the statement's response into one result per step.

import type { Pool, QueryConfig } from 'pg';
import type { AcceptedCall } from '../../calls/call-types.ts';
import type { CallEvent, TerminalEvent } from '../../calls/contract/call-event.ts';
import { type CallStep, legsOf, optOutOf } from '../../calls/life/call-step.ts';
import type { CallEvidence } from '../../calls/rules/evidence.ts';
import { suppressedAddressOf } from '../../calls/rules/suppression.ts';
import { dayOf } from '../days.ts';
import { jsonRows, storableJson } from '../json-rows.ts';
import { becomeRuled } from '../rules/ruled-accounts.ts';
import { inTransaction } from '../transaction.ts';
import { type AppendVariant, appendStatement } from './append-statement.ts';

export type WaitingStep = {
  readonly call: AcceptedCall;
  readonly step: CallStep;
  /** True if no process has claimed the call. */
  readonly isUntaken: boolean;
  /** True if part of the step may already be stored. */
  readonly isRepeated: boolean;
};

/** A notification that has to be sent for an event. It is signed and sent in this form. */
export type OwedNotification = {
  readonly eventId: string;
  readonly callId: string;
  readonly appId: string;
  readonly accountId: string;
  readonly botId: string;
  /** The origin of the notification URL. */
  readonly origin: string;
  readonly sequence: number;
  readonly eventSequence: number;
  readonly body: string;
  /** True if this process should lease the call's queue when the statement creates it. */
  readonly lease: boolean;
};

export type AppendPorts = {
  readonly pool: Pool;
  readonly ownerId: string;
  /**
   * Builds the notification for an event.
   *
   * @returns undefined if the event doesn't need a notification
   */
  readonly owedFor: (call: AcceptedCall, event: CallEvent) => OwedNotification | undefined;
  /**
   * Returns the sequence number of the last event that is known to be on the stream.
   *
   * @returns undefined if we don't know of any newly published events
   */
  readonly publishedThrough: (callId: string) => number | undefined;
  readonly now: () => Date;
  /** Returns when the lease of a queue that is created at `now` expires. */
  readonly leaseUntil: (now: Date) => Date;
  /** How long a notification that was rejected (4xx) holds up the call's later notifications. */
  readonly passRefusedAfterMs: number;
};

export type AppendedStep =
  /** The call has already ended, or another process owns it. */
  | { readonly kind: 'not owned' }
  /** Another process has stored different events under these sequence numbers. */
  | { readonly kind: 'contradicted' }
  | {
      readonly kind: 'stored';
      readonly events: readonly CallEvent[];
      readonly owed: readonly OwedNotification[];
      readonly storedAt: Date;
      /** True if we know that the call's first event has been published. */
      readonly isQueuedPublished: boolean;
      /**
       * When this process's lease on the queue expires. Omitted if this process doesn't hold the
       * lease.
       */
      readonly leasedUntil?: Date;
      /** True if the statement created the queue. */
      readonly isNewQueue: boolean;
    };

type Row = {
  readonly call_id: string;
  readonly is_answered: boolean;
  readonly published: number | null;
  readonly stored: number;
  readonly is_new: boolean | null;
  readonly leased_until: Date | null;
  readonly event_ids: readonly string[];
};

type OnlyIf = 'answered' | 'unanswered';
type Candidate = { readonly event: CallEvent; readonly onlyIf?: OnlyIf };

/**
 * Appends one step for each of several calls, all of which must have been accepted on the same day.
 * Returns one result per step, in the same order.
 */
export async function appendSteps(
  ports: AppendPorts,
  steps: readonly WaitingStep[],
): Promise<readonly AppendedStep[]> {
  const [first] = steps;
  if (first === undefined) return [];
  const now = ports.now();
  const leasedUntil = ports.leaseUntil(now);
  const prepared = steps.map((waiting) => prepare(ports, waiting));
  const values = [
    jsonRows(prepared.map(({ row }) => row)),
    ports.ownerId,
    jsonRows(prepared.flatMap(({ eventRows }) => eventRows)),
    jsonRows(prepared.flatMap(({ owedRows }) => owedRows)),
    now,
    leasedUntil,
    new Date(now.getTime() - ports.passRefusedAfterMs),
    jsonRows(steps.flatMap(legRows)),
  ];
  const added = additionsOf(steps);
  const query = {
    ...appendStatement(dayOf(first.call.acceptedAt), added.variant),
    values: [...values, ...added.values],
  };
  const rows = await runAppend(ports.pool, query, added.accountIds);
  const byCall = new Map(rows.map((row) => [row.call_id, row]));
  return prepared.map((each) => toAppendedStep(each, byCall.get(each.waiting.call.callId), now));
}

/** What the steps change besides their calls. The values follow those of every batch. */
function additionsOf(steps: readonly WaitingStep[]): {
  readonly variant: AppendVariant;
  readonly values: readonly string[];
  /** The accounts of people who opted out. */
  readonly accountIds: readonly string[];
} {
  const numbers = steps.flatMap(numberRows);
  const optedOut = steps.filter(({ step }) => optOutOf(step) !== undefined);
  if (optedOut.length > 0) {
    const values = [jsonRows(numbers), jsonRows(optedOut.flatMap(suppressionRows))];
    const accountIds = [...new Set(optedOut.map(({ call }) => call.accountId))].sort();
    return { variant: 'opt-outs', values, accountIds };
  }
  const variant = numbers.length > 0 ? 'numbers' : 'plain';
  return { variant, values: numbers.length > 0 ? [jsonRows(numbers)] : [], accountIds: [] };
}

/** An account's first suppression makes it ruled, in the same commit. */
async function runAppend(
  pool: Pool,
  query: QueryConfig,
  accountIds: readonly string[],
): Promise<readonly Row[]> {
  if (accountIds.length === 0) return (await pool.query<Row>(query)).rows;
  return await inTransaction(pool, async (client) => {
    for (const accountId of accountIds) await becomeRuled(client, accountId);
    return (await client.query<Row>(query)).rows;
  });
}

/**
 * If it's unknown whether the answer was stored, the call has two possible ends with the same event
 * id. `onlyIf` says which end applies.
 */
type Owed = { readonly notification: OwedNotification; readonly onlyIf: OnlyIf | undefined };

type Prepared = {
  readonly waiting: WaitingStep;
  readonly row: string;
  readonly candidates: readonly Candidate[];
  readonly eventRows: readonly string[];
  readonly owed: readonly Owed[];
  readonly owedRows: readonly string[];
};

function prepare(ports: AppendPorts, waiting: WaitingStep): Prepared {
  const candidates = listCandidates(waiting.step);
  const owed: Owed[] = [];
  const owedRows: string[] = [];
  for (const { event, onlyIf } of candidates) {
    const notification = ports.owedFor(waiting.call, event);
    if (notification === undefined) continue;
    owed.push({ notification, onlyIf });
    owedRows.push(owedRow(notification, onlyIf));
  }
  const { callId } = waiting.call;
  return {
    waiting,
    row: stepRow(waiting, ports.publishedThrough(callId)),
    candidates,
    eventRows: candidates.map(eventRow),
    owed,
    owedRows,
  };
}

function listCandidates({ events, ending }: CallStep): readonly Candidate[] {
  const sure = events.map((event) => ({ event }));
  if (ending === undefined) return sure;
  const { event, ifAnswered } = ending;
  if (ifAnswered === undefined) return [...sure, { event }];
  return [
    ...sure,
    { event, onlyIf: 'unanswered' },
    ...ifAnswered.map((each) => ({ event: each, onlyIf: 'answered' as const })),
  ];
}

function toAppendedStep(
  { waiting, candidates, owed }: Prepared,
  row: Row | undefined,
  now: Date,
): AppendedStep {
  if (row === undefined) return { kind: 'not owned' };
  const holding = row.is_answered ? 'answered' : 'unanswered';
  const holds = ({ onlyIf }: { readonly onlyIf?: OnlyIf | undefined }): boolean =>
    onlyIf === undefined || onlyIf === holding;
  const events = candidates.filter(holds).map(({ event }) => event);
  // The state machine stopped waiting for this answer to be stored, but the database did store it.
  // We append the answer's events again so that they are published.
  const isDoubted = row.is_answered && waiting.step.ending?.ifAnswered !== undefined;
  const mayBeKnown = waiting.isRepeated || isDoubted;
  if (!mayBeKnown && row.stored < events.length) return { kind: 'contradicted' };
  const pending = new Set(row.event_ids);
  return {
    kind: 'stored',
    events,
    owed: owed
      .filter((each) => holds(each) && pending.has(each.notification.eventId))
      .map(({ notification }) => notification),
    storedAt: now,
    isQueuedPublished: row.published !== null,
    isNewQueue: row.is_new === true,
    ...(row.leased_until === null ? {} : { leasedUntil: row.leased_until }),
  };
}

function stepRow({ call, step, isUntaken }: WaitingStep, published: number | undefined): string {
  const { events, dialedAt, ringingAt, answeredAt, ending, person } = step;
  return storableJson({
    call_id: call.callId,
    is_untaken: isUntaken,
    dialed_at: dialedAt,
    ringing_at: ringingAt,
    answered_at: answeredAt,
    ftc_outcome: person?.ftc,
    ofcom_outcome: person?.ofcom,
    ...(ending === undefined
      ? {}
      : {
          ending: endingColumns(ending.event, ending.evidence),
          ending_if_answered: endingColumns(ending.ifAnswered?.at(-1), ending.evidence),
        }),
    event_sequence: events.at(-1)?.eventSequence,
    notification_sequence: lastNotification(events),
    published,
  });
}

/** What the step changes for the number of a call whose account has calling rules. */
function numberRows({ call, step: { dialedAt, answeredAt, ending } }: WaitingStep): string[] {
  const isUnsent = ending?.isUnsent === true;
  const sentBy = ending?.sentBy;
  // A call that another process had is not known to be ruled. If it isn't, its number has no row.
  if (call.isRuled !== true && sentBy === undefined) return [];
  const number = suppressedAddressOf(call.request.target);
  if (number?.startsWith('+') !== true) return [];
  if (dialedAt === undefined && answeredAt === undefined && sentBy === undefined && !isUnsent) {
    return [];
  }
  const { callId, accountId } = call;
  return [
    storableJson({
      ...{ call_id: callId, account_id: accountId, number },
      ...{ dialed_at: dialedAt, sent_by: sentBy, answered_at: answeredAt, is_unsent: isUnsent },
    }),
  ];
}

/**
 * The suppression of the address that the call dialled. Events don't contain it, since their
 * readers don't need to know whom the account called.
 */
function suppressionRows({ call, step }: WaitingStep): string[] {
  const address = suppressedAddressOf(call.request.target);
  if (address === undefined) return [];
  const { accountId, appId } = call;
  const source = optOutOf(step)?.data.source;
  return [storableJson({ account_id: accountId, app_id: appId, address, source })];
}

function legRows({ call: { callId }, step }: WaitingStep): string[] {
  return legsOf(callId, step).map(({ legId, leg }) =>
    storableJson({ call_id: callId, leg_id: legId, leg }),
  );
}

/** @returns undefined if there is no such ending */
function endingColumns(event: CallEvent | undefined, evidence: CallEvidence | undefined) {
  if (event === undefined || !isTerminal(event)) return undefined;
  const { outcome, reason, reasonCode, sipStatus, rule, notificationSequence } = event.data;
  const { machineDetected, machineDetection } = event.data;
  return {
    at: event.time,
    ...{ outcome, reason, reasonCode },
    verdict: machineDetection,
    sipStatus,
    rule,
    status: machineDetected === true ? 'machineDetected' : event.type,
    evidence,
    eventSequence: event.eventSequence,
    notificationSequence,
  };
}

function isTerminal(event: CallEvent): event is TerminalEvent {
  return event.type === 'completed' || event.type === 'failed';
}

function lastNotification(events: readonly CallEvent[]): number | undefined {
  return events.flatMap(({ data }) => data.notificationSequence ?? []).at(-1);
}

function eventRow({ event, onlyIf }: Candidate): string {
  const { callId, eventSequence, id, type, time, data } = event;
  return storableJson({
    call_id: callId,
    event_sequence: eventSequence,
    event_id: id,
    type,
    time,
    data,
    only_if: onlyIf,
  });
}

function owedRow(owed: OwedNotification, onlyIf: OnlyIf | undefined): string {
  return storableJson({
    event_id: owed.eventId,
    call_id: owed.callId,
    account_id: owed.accountId,
    bot_id: owed.botId,
    origin: owed.origin,
    sequence: owed.sequence,
    event_sequence: owed.eventSequence,
    lease: owed.lease,
    only_if: onlyIf,
  });
}
