// What a campaign's calls have come to, by the formulas of two regulators, and what holds it.
//
// Every call is counted once: as a row of `calls` until it is settled, and from then on in the
// totals, in the same commit. A statement that adds up both therefore always sees each call.

import type { Tally } from '../../rules/meter.ts';
import { reachedSlot } from '../calls/call-slots.ts';
import type { Database } from '../database.ts';
import { calleeNumber, campaign as campaignOf } from '../schema/calls.ts';
import { sql } from '../sql.ts';
import { isDecided, outcome, peopleOutcomes, wasAbandoned } from './campaign-outcomes.ts';

const dayMs = 86_400_000;
/** The period over which the FTC's rule measures. */
export const windowMs = 30 * dayMs;

/** One row of figures for each call, over any relation with the columns of `calls`. */
const figures = (relation: string, condition: string) => `
  select account_id, ${campaignOf.text} as campaign, ${reachedSlot.text} as slot,
    case when ${outcome('ftc')} in (${peopleOutcomes}) then 1 else 0 end as answered_by_person,
    case ${outcome('ftc')} when 'connected' then 1 else 0 end as ftc_connected,
    case ${outcome('ftc')} when 'abandoned' then 1 else 0 end as ftc_abandoned,
    case ${outcome('ofcom')} when 'connected' then 1 else 0 end as ofcom_connected,
    case ${outcome('ofcom')} when 'abandoned' then 1 else 0 end as ofcom_abandoned
  from ${relation} where ${condition} and ${isDecided}`;

const sums = [
  ...['answered_by_person', 'ftc_connected', 'ftc_abandoned', 'ofcom_connected'],
  'ofcom_abandoned',
];

/**
 * Parts of the statement that settles calls (`../outbox/settling.ts`). They add the calls of
 * `settled` to the totals and to the current windows of their campaigns, and note which numbers
 * were abandoned, by whichever formula. Processes lock the rows sorted, and numbers before
 * campaigns, here and in `permits.ts`.
 */
export const settledCampaigns = `campaign_figures as (${figures('settled', 'true')}
), by_campaign as (
  insert into campaign_totals as known (account_id, campaign, slot, calls, ${sums.join(', ')})
  select account_id, campaign, slot, count(*), ${sums.map((name) => `sum(${name})`).join(', ')}
  from campaign_figures group by 1, 2, 3 order by 1, 2, 3
  on conflict (account_id, campaign, slot) do update set calls = known.calls + excluded.calls,
    ${sums.map((name) => `${name} = known.${name} + excluded.${name}`).join(', ')}
  returning 1
), abandoned_numbers as materialized (
  select account_id, number, max(ended_at) as at from called_numbers n join (
    select account_id, '+' || ${calleeNumber.text} as number, ended_at from settled
    where ${wasAbandoned}
  ) s using (account_id, number)
  group by 1, 2
), abandoned_rows as materialized (
  select n.account_id, n.number from called_numbers n
  join abandoned_numbers using (account_id, number) order by 1, 2 for update of n
), noted_numbers as (
  update called_numbers n set abandoned_at = greatest(n.abandoned_at, a.at)
  from abandoned_numbers a join abandoned_rows using (account_id, number)
  where n.account_id = a.account_id and n.number = a.number
), campaign_rows as materialized (
  select c.account_id, c.campaign, c.window_from from campaigns c
  join (select distinct account_id, campaign from campaign_figures) f using (account_id, campaign)
  where (select count(*) from abandoned_rows) >= 0
  order by 1, 2 for update of c
), campaign_windows as (
  update campaigns c set decided = c.decided + f.decided,
    answered_by_person = c.answered_by_person + f.people, abandoned = c.abandoned + f.abandoned
  from (
    select account_id, campaign, count(*) as decided, sum(answered_by_person) as people,
      sum(ftc_abandoned) as abandoned
    from campaign_figures join campaign_rows using (account_id, campaign)
    where slot >= window_from group by 1, 2
  ) f
  where c.account_id = f.account_id and c.campaign = f.campaign
)`;

/** The open calls of campaigns whose outcome is known. */
const openFigures = figures('calls', 'dial_started_at is not null and end_published_at is null');

export type CampaignWindow = {
  readonly from: Date;
  readonly until: Date;
  readonly ftc: Tally;
  readonly ofcom: Tally;
};

type FalseMachineRate = { readonly rate: number; readonly source: string };

export type Campaign = {
  readonly campaign: string;
  readonly ruleSet: string;
  /** The share of people that detection takes for machines, if the rule set states it. */
  readonly falseMachineRate?: FalseMachineRate;
  /** Present while calls wait for `abandoned-rate`. */
  readonly held?: { readonly since: Date; readonly until: Date };
  /** Windows of 30 days from the first call on, oldest first. */
  readonly months: readonly CampaignWindow[];
  /** Calendar days in the time zone of Ofcom's rule that have calls, oldest first. */
  readonly days: readonly CampaignWindow[];
};

export type Campaigns = {
  /** Lists campaigns by name, from after the name `after`. */
  list(
    accountId: string,
    page: { readonly limit: number; readonly after?: string },
  ): Promise<{ readonly campaigns: readonly Campaign[]; readonly next?: string }>;
  /** @returns undefined if no call of the campaign was ever permitted by a rule set */
  find(accountId: string, campaign: string): Promise<Campaign | undefined>;
};

/** Ofcom's day runs from midnight to midnight in the United Kingdom. */
const ofcomZone = 'Europe/London';
/** A list of a campaign's days goes back this far. */
const listedDays = 90;

type CampaignRow = {
  readonly campaign: string;
  readonly rule_set: string;
  readonly began_at: Date;
  readonly held_since: Date | null;
  readonly held_until: Date | null;
  readonly false_machine_rate: FalseMachineRate | null;
};

type WindowRow = {
  readonly campaign: string;
  readonly kind: 'month' | 'day';
  readonly from_at: Date;
  readonly until_at: Date;
  readonly answered_by_person: number;
  readonly ftc_connected: number;
  readonly ftc_abandoned: number;
  readonly ofcom_connected: number;
  readonly ofcom_abandoned: number;
};

const total = sums.map((name) => `sum(${name})::double precision as ${name}`).join(', ');

const windowsStatement = {
  name: 'windows of campaigns',
  text: `
with figures as (
  select campaign, slot, ${sums.join(', ')} from campaign_totals
  where account_id = $1 and campaign = any($2::text[])
  union all
  select campaign, slot, ${sums.join(', ')} from (${openFigures}
    and account_id = $1 and ${campaignOf.text} = any($2::text[])) as open
), placed as (
  select f.*, date_bin('30 days', slot, began_at) as month,
    date_trunc('day', slot at time zone '${ofcomZone}') as day
  from figures f join campaigns c on c.account_id = $1 and c.campaign = f.campaign
)
select campaign, 'month' as kind, month as from_at, month + interval '30 days' as until_at, ${total}
from placed group by campaign, month
union all
select campaign, 'day', day at time zone '${ofcomZone}', (day + interval '1 day') at time zone '${ofcomZone}',
  ${total}
from placed where slot > clock_timestamp() - interval '${listedDays} days'
group by campaign, day
order by 1, 2, 3`,
};

export function createCampaigns({ reads }: Pick<Database, 'reads'>): Campaigns {
  const columns = sql`campaign, rule_set, began_at, held_since, held_until, (
    select document #> '{abandoned,falseMachineRate}' from rule_sets r
    where r.account_id = campaigns.account_id and r.name = campaigns.rule_set and r.is_current
  ) as false_machine_rate`;
  const withWindows = async (accountId: string, rows: readonly CampaignRow[]) => {
    if (rows.length === 0) return [];
    const names = rows.map(({ campaign }) => campaign);
    const windows = await reads(accountId).query<WindowRow>({
      ...windowsStatement,
      values: [accountId, names],
    });
    return rows.map((row) =>
      toCampaign(
        row,
        windows.rows.filter(({ campaign }) => campaign === row.campaign),
      ),
    );
  };
  return {
    async list(accountId, { limit, after = '' }) {
      // One extra row shows whether there is another page.
      const { rows } = await reads(accountId).query<CampaignRow>(sql`
        select ${columns} from campaigns where account_id = ${accountId} and campaign > ${after}
        order by campaign limit ${limit + 1}`);
      const page = rows.slice(0, limit);
      const next = rows.length > limit ? page.at(-1)?.campaign : undefined;
      const campaigns = await withWindows(accountId, page);
      return { campaigns, ...(next === undefined ? {} : { next }) };
    },
    async find(accountId, campaign) {
      const { rows } = await reads(accountId).query<CampaignRow>(sql`
        select ${columns} from campaigns
        where account_id = ${accountId} and campaign = ${campaign}`);
      return (await withWindows(accountId, rows))[0];
    },
  };
}

function toCampaign(row: CampaignRow, windows: readonly WindowRow[]): Campaign {
  const { held_since: since, held_until: until, false_machine_rate: rate } = row;
  return {
    campaign: row.campaign,
    ruleSet: row.rule_set,
    ...(rate === null ? {} : { falseMachineRate: rate }),
    ...(since === null || until === null ? {} : { held: { since, until } }),
    months: windows.filter(({ kind }) => kind === 'month').map(toWindow),
    days: windows.filter(({ kind }) => kind === 'day').map(toWindow),
  };
}

function toWindow(row: WindowRow): CampaignWindow {
  const answeredByPerson = row.answered_by_person;
  return {
    from: row.from_at,
    until: row.until_at,
    ftc: { answeredByPerson, abandoned: row.ftc_abandoned, connected: row.ftc_connected },
    ofcom: { answeredByPerson, abandoned: row.ofcom_abandoned, connected: row.ofcom_connected },
  };
}
