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
import type { AbandonmentRule } from '../../calls/abandonment/abandonment.ts';
import type { DialoutRequest } from '../../calls/call-types.ts';
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
import type { Queries } from '../queries.ts';
import { readCampaigns } from '../schema/lock-calls.ts';
import { ftcOutcome, isDecided } from './campaign-outcomes.ts';
import { windowMs } from './campaigns.ts';

export type CampaignKey = { readonly accountId: string; readonly campaign: string };

/** A row of `campaigns`, and its calls that are not settled (`../schema/lock-calls.ts`). */
type GateRow = {
  readonly account_id: string;
  readonly campaign: string;
  readonly rule_set: string;
  readonly began_at: Date;
  readonly window_from: Date;
  readonly decided: number;
  readonly answered_by_person: number;
  readonly abandoned: number;
  readonly held_since: Date | null;
  readonly held_until: Date | null;
  readonly pause_ms: number | null;
  readonly probe_call_id: string | null;
  readonly in_flight: number;
  readonly open_decided: number;
  readonly open_answered_by_person: number;
  readonly open_abandoned: number;
};

type ProbeRow = {
  readonly call_id: string;
  readonly result: ProbeResult | null;
  readonly at: Date;
};

/** A locked campaign. It counts the calls that the transaction permits. */
export class CampaignGate {
  readonly key: CampaignKey;
  /** The rule set of the campaign's last call. */
  readonly ruleSet: string;
  #counts: CampaignCounts;
  #state: HoldState;
  #probeCallId: string | undefined;
  #hasChanged: boolean;

  constructor(row: GateRow, probe: ProbeRow | undefined) {
    this.key = { accountId: row.account_id, campaign: row.campaign };
    this.ruleSet = row.rule_set;
    this.#counts = {
      decided: row.decided + row.open_decided,
      answeredByPerson: row.answered_by_person + row.open_answered_by_person,
      abandoned: row.abandoned + row.open_abandoned,
      inFlight: row.in_flight,
    };
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

  /**
   * Returns how many waiting calls may be taken now, up to `waiting`.
   *
   * @param released calls that were released and haven't been taken yet
   */
  spare(
    rule: HoldRule,
    { waiting, released }: { readonly waiting: number; readonly released: number },
    now: Date,
  ): number {
    const spare = spareCalls(rule, this.#counts, waiting + released) - released;
    if (spare > 0 || released > 0) return Math.max(0, spare);
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

const lockStatement = {
  name: 'lock campaigns',
  text: 'select * from lock_campaigns($1, $2)',
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

// The window that contains now begins a whole number of 30 days after the campaign did. It is
// counted anew when it begins.
const beginWindowStatement = {
  name: 'begin a window of a campaign',
  text: `update campaigns c set window_from = $3, (decided, answered_by_person, abandoned) = (
    select coalesce(sum(calls), 0), coalesce(sum(answered_by_person), 0), coalesce(sum(ftc_abandoned), 0)
    from campaign_totals t
    where t.account_id = c.account_id and t.campaign = c.campaign and t.slot >= $3)
  where account_id = $1 and campaign = $2
  returning window_from, decided, answered_by_person, abandoned`,
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
  const probeIds = current.flatMap(({ probe_call_id: id }) => (id === null ? [] : [id]));
  const probes =
    probeIds.length === 0
      ? []
      : (await client.query<ProbeRow>({ ...probeStatement, values: [probeIds] })).rows;
  return new Map(
    current.map((row) => {
      const key = keyOf({ accountId: row.account_id, campaign: row.campaign });
      const probe = probes.find(({ call_id: id }) => id === row.probe_call_id);
      return [key, new CampaignGate(row, probe)];
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

/**
 * Reads a campaign without locking it, to say what would happen to its next call.
 *
 * @returns undefined if no call of the campaign counts in the current window
 */
export async function readCampaign(
  queries: Queries,
  key: CampaignKey,
  now: Date,
): Promise<CampaignGate | undefined> {
  const { rows } = await queries.query<GateRow>(readCampaigns, keyColumns([key]));
  const [row] = rows;
  if (row === undefined || windowOf(row, now).getTime() !== row.window_from.getTime()) {
    return undefined;
  }
  const { probe_call_id: probeId } = row;
  if (probeId === null) return new CampaignGate(row, undefined);
  const probes = await queries.query<ProbeRow>(probeStatement.text, [[probeId]]);
  return new CampaignGate(row, probes.rows[0]);
}

/** The members of a request that say whether and where the call counts. */
export type CountedRequest = Pick<DialoutRequest, 'campaign' | 'machineDetection'>;

/** @returns undefined if the call doesn't count in the figures of a campaign */
export function abandonmentRule(
  { abandoned, connected, voice }: Rules,
  { campaign, machineDetection }: CountedRequest,
): AbandonmentRule | undefined {
  if (abandoned === undefined || campaign === undefined || machineDetection === 'disabled') {
    return undefined;
  }
  return { formula: abandoned.formula, connected: voice === 'recorded' ? 'message' : connected };
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

/** Returns when the window that contains `now` began. */
function windowOf({ began_at: beganAt }: Pick<GateRow, 'began_at'>, now: Date): Date {
  const passed = Math.floor((now.getTime() - beganAt.getTime()) / windowMs);
  return new Date(beganAt.getTime() + Math.max(0, passed) * windowMs);
}

async function inCurrentWindow(
  client: Pick<PoolClient, 'query'>,
  row: GateRow,
  now: Date,
): Promise<GateRow> {
  const from = windowOf(row, now);
  if (from.getTime() === row.window_from.getTime()) return row;
  const { rows } = await client.query<
    Pick<GateRow, 'window_from' | 'decided' | 'answered_by_person' | 'abandoned'>
  >({
    ...beginWindowStatement,
    values: [row.account_id, row.campaign, from],
  });
  return { ...row, ...rows[0] };
}
