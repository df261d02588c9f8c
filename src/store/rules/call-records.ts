// Reads the records of calls. Settling writes them (`src/store/outbox/settling.ts`).

import type { DialTarget } from '../../calls/call-types.ts';
import type { CallEvidence } from '../../calls/rules/evidence.ts';
import type { Database } from '../database.ts';
import { all, sql } from '../sql.ts';

/** The consent that the request stated. */
type StatedConsent = {
  readonly basis?: string;
  readonly at?: string;
  readonly reference?: string;
};

/** A row of `call_records`. */
export type CallRecord = {
  readonly call_id: string;
  readonly accepted_at: Date;
  readonly app_id: string;
  readonly bot_id: string;
  readonly trunk: string | null;
  readonly number: string | null;
  readonly target: DialTarget | null;
  readonly caller: string;
  readonly caller_name: string | null;
  readonly dialed_at: Date | null;
  readonly ringing_at: Date | null;
  readonly answered_at: Date | null;
  readonly ended_at: Date;
  readonly outcome: string;
  readonly reason_code: string | null;
  readonly verdict: string | null;
  readonly campaign: string | null;
  readonly time_zone: string | null;
  readonly consent: StatedConsent | null;
  readonly rule_set: string | null;
  readonly rule_set_version: number | null;
  readonly rule: string | null;
  readonly ftc_outcome: string | null;
  readonly ofcom_outcome: string | null;
  readonly evidence: CallEvidence | null;
};

export type RecordFilter = {
  readonly accountId: string;
  readonly botIds: readonly string[] | 'all';
  /** Accepted at this time or later. */
  readonly from?: Date;
  /** Accepted before this time. */
  readonly to: Date;
  readonly campaign?: string;
};

export type CallRecords = {
  /**
   * Yields the records in the order in which their calls were accepted, a batch at a time. The next
   * batch is read when the caller asks for it, so memory stays bounded however many there are.
   */
  read(filter: RecordFilter): AsyncGenerator<readonly CallRecord[]>;
};

/**
 * Rows that one statement reads, whether or not they match. Their memory is about 1 MB, and an
 * export delays the embedded database's other statements by some 10 ms.
 */
const batchRows = 500;

type Place = { readonly acceptedAt: Date; readonly callId: string };
/** The last row of the batch, with each matching record. Without one, the record is null. */
type Row = { readonly last_at: Date; readonly last_id: string } & (
  | CallRecord
  | { readonly call_id: null }
);

export function createCallRecords({ reads }: Pick<Database, 'reads'>): CallRecords {
  return {
    async *read(filter) {
      let after: Place | undefined;
      for (;;) {
        const { rows } = await reads(filter.accountId).query<Row>(batchStatement(filter, after));
        const [first] = rows;
        if (first === undefined) return;
        const records = rows.flatMap((row) => (row.call_id === null ? [] : [row]));
        if (records.length > 0) yield records;
        after = { acceptedAt: first.last_at, callId: first.last_id };
      }
    },
  };
}

/**
 * Records are read by their primary key, even for a campaign or a bot: a statement then reads a
 * bounded number of rows, and calls don't pay for another index.
 */
function batchStatement(filter: RecordFilter, after: Place | undefined) {
  const { accountId, botIds, from, to, campaign } = filter;
  const isScanned = all([
    sql`account_id = ${accountId}`,
    from === undefined ? undefined : sql`accepted_at >= ${from}`,
    sql`accepted_at < ${to}`,
    after === undefined
      ? undefined
      : sql`(accepted_at, call_id) > (${after.acceptedAt}, ${after.callId})`,
  ]);
  const isWanted = all([
    botIds === 'all' ? undefined : sql`scanned.bot_id = any(${botIds}::text[])`,
    campaign === undefined ? undefined : sql`scanned.campaign = ${campaign}`,
  ]);
  return sql`
with scanned as (
  select * from call_records where ${isScanned} order by accepted_at, call_id limit ${batchRows}
), last as (
  select accepted_at as last_at, call_id as last_id from scanned
  order by accepted_at desc, call_id desc limit 1
)
select last_at, last_id, scanned.* from last left join scanned on ${isWanted}
order by scanned.accepted_at, scanned.call_id`;
}
