// Looks at campaigns that are held, and releases as many of their calls as may be dialled. A call
// that waits for `abandoned-rate` has no time at which it is due, so that a campaign with thousands
// of calls is not taken from the queue and given back every 30 seconds.

import type { Pool, PoolClient } from 'pg';
import type { CampaignReview, HeldCampaign } from '../../calls/rules/held-campaign.ts';
import { campaign as campaignOf } from '../schema/calls.ts';
import { inTransaction } from '../transaction.ts';
import {
  type CampaignGate,
  holdRuleOf,
  keyOf,
  lockCampaigns,
  storeGates,
} from './campaign-gates.ts';
import { readRules } from './current-rules.ts';

type HeldRow = HeldCampaign & {
  /** The rule set of the campaign's last call. */
  readonly ruleSet: string;
};

/** A campaign that may dial without limit releases its calls over several reviews. */
const releasedAtOnce = 200;

const waitingStatement = `
select call_id from calls
where account_id = $1 and ${campaignOf.text} = $2 and not_before is not null
  and waits_for = 'abandoned-rate'
order by accepted_at limit ${releasedAtOnce}`;

/** Calls that were released and haven't been taken yet. */
const releasedStatement = `
select count(*)::integer as count from calls
where account_id = $1 and ${campaignOf.text} = $2 and not_before is null
  and waits_for = 'abandoned-rate' and ended_at is null`;

const releaseStatement = `
update calls set not_before = null where call_id = any($1::text[]) and not_before is not null`;

const heldStatement = `
select account_id as "accountId", campaign, rule_set as "ruleSet", held_since as since
from campaigns where held_since is not null order by account_id, campaign`;

/** Reviews all campaigns that are held. Any node may do so at any time. */
export async function reviewCampaigns(pool: Pool, now: Date): Promise<CampaignReview> {
  const { rows } = await pool.query<HeldRow>(heldStatement);
  const held: HeldCampaign[] = [];
  const freed: HeldCampaign[] = [];
  for (const campaign of rows) {
    const isFreed = await inTransaction(pool, (client) => review(client, campaign, now));
    (isFreed ? freed : held).push(campaign);
  }
  return { held, freed };
}

/** @returns true if the review has ended the hold */
async function review(client: PoolClient, held: HeldRow, now: Date): Promise<boolean> {
  const gate = (await lockCampaigns(client, [held], now)).get(keyOf(held));
  // Another node has ended the hold since.
  if (gate === undefined || !gate.isHeld) return false;
  const { rows } = await client.query<{ call_id: string }>(waitingStatement, [
    held.accountId,
    held.campaign,
  ]);
  const { rows: counted } = await client.query<{ count: number }>(releasedStatement, [
    held.accountId,
    held.campaign,
  ]);
  const released = counted[0]?.count ?? 0;
  const spare = await spareOf(client, held, gate, { waiting: rows.length, released, now });
  const due = rows.slice(0, spare).map(({ call_id: callId }) => callId);
  if (due.length > 0) await client.query(releaseStatement, [due]);
  const isFreed = rows.length === 0 && released === 0;
  if (isFreed) gate.free();
  await storeGates(client, [gate]);
  return isFreed;
}

/** Returns how many of the waiting calls may be taken now. All, if the rule set no longer holds. */
async function spareOf(
  client: PoolClient,
  { accountId, ruleSet }: HeldRow,
  gate: CampaignGate,
  { now, ...calls }: { readonly waiting: number; readonly released: number; readonly now: Date },
): Promise<number> {
  const call = { accountId, rules: ruleSet };
  const current = (await readRules(client, [call], { deleted: 'apply' }))(call);
  const rule = current === undefined ? undefined : holdRuleOf(current.rules);
  return rule === undefined ? calls.waiting : gate.spare(rule, calls, now);
}
