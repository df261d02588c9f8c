// Holds campaigns back: the part of a call's check that looks at the campaign rather than at the
// person. A transaction locks the rows of its campaigns, judges its calls one after the other, and
// stores what it decided, so that no two nodes use up the same room.
//
// States of a campaign:
// - free: no call waits for `abandoned-rate`.
// - held: calls wait. The review, which any node runs about once a second, releases as many as may
//   be dialled, or one as a probe. A released call is checked again when it is taken.
// A probe is one call that is dialled although the share is too high. The next one waits until it
// has ended or its outcome is known.

import type { PoolClient } from 'pg';
import type { Rules } from '../../rules/compile-rules.ts';
import {
  afterProbe,
  type CampaignCounts,
  type HoldRule,
  type HoldState,
  judgeHold,
  type ProbeResult,
  spareCalls,
} from '../../rules/meter.ts';
import { campaign as campaignOf } from '../schema/calls.ts';
import { ftcOutcome, isDecided, peopleOutcomes, windowMs } from './campaigns.ts';

export type CampaignKey = { readonly accountId: string; readonly campaign: string };

type GateRow = {
  readonly account_id: string;
  readonly campaign: string;
  readonly began_at: Date;
  readonly window_from: Date;
  readonly decided: number;
  readonly answered_by_person: number;
  readonly abandoned: number;
  readonly held_since: Date | null;
  readonly held_until: Date | null;
  readonly pause_ms: number | null;
  readonly probe_call_id: string | null;
};

type OpenRow = {
  readonly account_id: string;
  readonly campaign: string;
  readonly in_flight: number;
  readonly decided: number;
  readonly answered_by_person: number;
  readonly abandoned: number;
  readonly released: number;
};

type ProbeRow = {
  readonly call_id: string;
  readonly result: ProbeResult | null;
  readonly at: Date;
};

/** A locked campaign. It counts the calls that the transaction permits. */
export class CampaignGate {
  readonly key: CampaignKey;
  #counts: CampaignCounts;
  #state: HoldState;
  #probeCallId: string | undefined;
  /** Calls that were released and haven't been taken yet. */
  readonly released: number;
  #hasChanged: boolean;

  constructor(row: GateRow, open: OpenRow | undefined, probe: ProbeRow | undefined) {
    this.key = { accountId: row.account_id, campaign: row.campaign };
    this.#counts = {
      decided: row.decided + (open?.decided ?? 0),
      answeredByPerson: row.answered_by_person + (open?.answered_by_person ?? 0),
      abandoned: row.abandoned + (open?.abandoned ?? 0),
      inFlight: open?.in_flight ?? 0,
    };
    this.released = open?.released ?? 0;
    const { held_since: heldSince, held_until: heldUntil, pause_ms: pauseMs } = row;
    const state: HoldState = {
      ...(heldSince === null ? {} : { heldSince }),
      ...(heldUntil === null ? {} : { heldUntil }),
      ...(pauseMs === null ? {} : { pauseMs }),
    };
    const result = probe?.result;
    const isDecided = probe !== undefined && result != null;
    this.#state = isDecided ? afterProbe(state, result, probe.at) : state;
    this.#probeCallId = isDecided ? undefined : (row.probe_call_id ?? undefined);
    this.#hasChanged = isDecided;
  }

  get isHeld(): boolean {
    return this.#state.heldSince !== undefined;
  }

  /**
   * Judges the next call.
   *
   * @returns undefined if the call may be dialled. Otherwise when the next probe may leave. The
   * call waits until a review releases it
   */
  judge(callId: string, rule: HoldRule, now: Date): Date | undefined {
    const verdict = judgeHold(rule, this.#counts, this.#state, now);
    if (verdict.kind === 'wait') {
      this.#hasChanged ||= this.#state.heldSince === undefined;
      this.#state = verdict.hold;
      return verdict.hold.heldUntil;
    }
    if (verdict.kind === 'probe') {
      this.#probeCallId = callId;
      this.#hasChanged = true;
    }
    this.#counts = { ...this.#counts, inFlight: this.#counts.inFlight + 1 };
    return undefined;
  }

  /** Returns how many waiting calls may be taken now, up to `waiting`. */
  spare(rule: HoldRule, waiting: number, now: Date): number {
    const spare = spareCalls(rule, this.#counts, waiting + this.released) - this.released;
    if (spare > 0 || this.released > 0) return Math.max(0, spare);
    return judgeHold(rule, this.#counts, this.#state, now).kind === 'probe' ? 1 : 0;
  }

  /** Ends the hold, because no call waits any more. */
  free(): void {
    this.#state = {};
    this.#hasChanged = true;
  }

  /** The row to store. Undefined if nothing has changed. */
  get change() {
    if (!this.#hasChanged) return undefined;
    const { heldSince = null, heldUntil = null, pauseMs = null } = this.#state;
    return {
      account_id: this.key.accountId,
      campaign: this.key.campaign,
      ...{ held_since: heldSince, held_until: heldUntil, pause_ms: pauseMs },
      probe_call_id: this.#probeCallId ?? null,
    };
  }
}

/** A call that counts in its campaign's figures, and the rule set that applies to it. */
export type MeasuredCall = CampaignKey & { readonly ruleSet: string };

// The window that contains now begins a whole number of 30 days after the campaign did. It is
// counted anew when it begins.
const lockStatement = {
  name: 'lock campaigns',
  text: `select * from campaigns join unnest($1::text[], $2::text[]) wanted (account_id, campaign)
  using (account_id, campaign) order by account_id, campaign for update of campaigns`,
};

const beginStatement = {
  name: 'begin campaigns',
  text: `insert into campaigns as known (account_id, campaign, rule_set, began_at, window_from)
  select account_id, campaign, rule_set, began_at, began_at
  from unnest($1::text[], $2::text[], $3::text[]) given (account_id, campaign, rule_set),
    date_bin('15 minutes', clock_timestamp(), timestamptz '2000-01-01 00:00:00+00') began_at
  order by account_id, campaign
  on conflict (account_id, campaign) do update set rule_set = excluded.rule_set
    where known.rule_set <> excluded.rule_set`,
};

const beginWindowStatement = {
  name: 'begin a window of a campaign',
  text: `update campaigns c set window_from = $3, (decided, answered_by_person, abandoned) = (
    select coalesce(sum(calls), 0), coalesce(sum(answered_by_person), 0), coalesce(sum(ftc_abandoned), 0)
    from campaign_totals t
    where t.account_id = c.account_id and t.campaign = c.campaign and t.slot >= $3)
  where account_id = $1 and campaign = $2 returning *`,
};

// The lock is taken by an earlier statement, so that this one sees everything that other nodes have
// committed.
const openStatement = {
  name: 'open calls of campaigns',
  text: `
select account_id, ${campaignOf.text} as campaign,
  (count(*) filter (where ftc_outcome = 'undecided' and rule is null and ended_at is null))::integer as in_flight,
  (count(*) filter (where ${isDecided}))::integer as decided,
  (count(*) filter (where ${isDecided} and ${ftcOutcome} in (${peopleOutcomes})))::integer as answered_by_person,
  (count(*) filter (where ${isDecided} and ${ftcOutcome} = 'abandoned'))::integer as abandoned,
  (count(*) filter (where waits_for = 'abandoned-rate' and ended_at is null))::integer as released
from calls
where end_published_at is null and not_before is null and ${campaignOf.text} is not null
  and (account_id, ${campaignOf.text}) in (select * from unnest($1::text[], $2::text[]))
group by 1, 2`,
};

const probeStatement = {
  name: 'probes of campaigns',
  text: `
select call_id, coalesce(ended_at, clock_timestamp()) as at,
  case when not coalesce(${isDecided}, false) and ended_at is null then null
    when ${ftcOutcome} = 'abandoned' then 'abandoned'
    when ${ftcOutcome} = 'connected' then 'connected' else 'other' end as result
from calls where call_id = any($1::text[])`,
};

const storeStatement = {
  name: 'store campaigns',
  text: `
update campaigns c set held_since = g.held_since, held_until = g.held_until, pause_ms = g.pause_ms,
  probe_call_id = g.probe_call_id
from json_to_recordset($1::json) g(account_id text, campaign text, held_since timestamptz,
  held_until timestamptz, pause_ms integer, probe_call_id text)
where c.account_id = g.account_id and c.campaign = g.campaign`,
};

/** Makes the rows of new campaigns, and notes the rule set that now applies to the others. */
export async function beginCampaigns(
  client: Pick<PoolClient, 'query'>,
  calls: readonly MeasuredCall[],
): Promise<void> {
  const begun = [...new Map(calls.map((call) => [keyOf(call), call])).values()];
  if (begun.length === 0) return;
  const ruleSets = begun.map(({ ruleSet }) => ruleSet);
  await client.query({ ...beginStatement, values: [...keyColumns(begun), ruleSets] });
}

/** Locks campaigns that have begun until the end of the transaction, in the order of their keys. */
export async function lockCampaigns(
  client: Pick<PoolClient, 'query'>,
  keys: readonly CampaignKey[],
  now: Date,
): Promise<ReadonlyMap<string, CampaignGate>> {
  const wanted = [...new Map(keys.map((key) => [keyOf(key), key])).values()];
  if (wanted.length === 0) return new Map();
  const { rows } = await client.query<GateRow>({ ...lockStatement, values: keyColumns(wanted) });
  const current: GateRow[] = [];
  for (const row of rows) current.push(await inCurrentWindow(client, row, now));
  const open = await client.query<OpenRow>({ ...openStatement, values: keyColumns(wanted) });
  const probeIds = current.flatMap(({ probe_call_id: id }) => (id === null ? [] : [id]));
  const probes =
    probeIds.length === 0
      ? []
      : (await client.query<ProbeRow>({ ...probeStatement, values: [probeIds] })).rows;
  return new Map(
    current.map((row) => {
      const key = keyOf({ accountId: row.account_id, campaign: row.campaign });
      const counts = open.rows.find(
        (one) => one.account_id === row.account_id && one.campaign === row.campaign,
      );
      const probe = probes.find(({ call_id: id }) => id === row.probe_call_id);
      return [key, new CampaignGate(row, counts, probe)];
    }),
  );
}

/** Stores what the gates have decided. */
export async function storeGates(
  client: Pick<PoolClient, 'query'>,
  gates: Iterable<CampaignGate>,
): Promise<void> {
  const changes = [...gates].flatMap(({ change }) => (change === undefined ? [] : [change]));
  if (changes.length === 0) return;
  await client.query({ ...storeStatement, values: [JSON.stringify(changes)] });
}

/** @returns undefined if the rule set never holds a campaign back */
export function holdRuleOf({ abandoned }: Rules): HoldRule | undefined {
  if (abandoned?.most === undefined || !abandoned.hold) return undefined;
  return { most: abandoned.most, allow: abandoned.allow };
}

export function keyOf({ accountId, campaign }: CampaignKey): string {
  return `${accountId} ${campaign}`;
}

function keyColumns(keys: readonly CampaignKey[]): [string[], string[]] {
  return [keys.map(({ accountId }) => accountId), keys.map(({ campaign }) => campaign)];
}

async function inCurrentWindow(
  client: Pick<PoolClient, 'query'>,
  row: GateRow,
  now: Date,
): Promise<GateRow> {
  const passed = Math.floor((now.getTime() - row.began_at.getTime()) / windowMs);
  const from = new Date(row.began_at.getTime() + Math.max(0, passed) * windowMs);
  if (from.getTime() === row.window_from.getTime()) return row;
  const { rows } = await client.query<GateRow>({
    ...beginWindowStatement,
    values: [row.account_id, row.campaign, from],
  });
  return rows[0] ?? row;
}
