// Looks at campaigns that are held, and releases as many of their calls as may be dialled. A call
// that waits for `abandoned-rate` has no time at which it is due, so that a campaign with thousands
// of calls is not taken from the queue and given back every 30 seconds.

import type { Pool, PoolClient } from 'pg';
import { campaign as campaignOf } from '../schema/calls.ts';
import { inTransaction } from '../transaction.ts';
import {
  type CampaignGate,
  type CampaignKey,
  keyOf,
  lockCampaigns,
  storeGates,
} from './campaign-gates.ts';
import { readRules } from './current-rules.ts';

/** A campaign that is held, and the rule set of its last call. */
export type HeldCampaign = CampaignKey & { readonly ruleSet: string };

export type Review = HeldCampaign & {
  /** Calls that were released for another check. */
  readonly released: number;
  /** True if no call waits any more, so the campaign is no longer held. */
  readonly isFree: boolean;
};

/** A campaign that may dial without limit releases its calls over several reviews. */
const releasedAtOnce = 200;

const waitingStatement = `
select call_id from calls
where account_id = $1 and ${campaignOf.text} = $2 and not_before is not null
  and waits_for = 'abandoned-rate'
order by accepted_at limit ${releasedAtOnce}`;

const releaseStatement = `
update calls set not_before = null where call_id = any($1::text[]) and not_before is not null`;

/** Reviews one campaign. Any node may do so at any time, because the review locks the campaign. */
export async function reviewCampaign(pool: Pool, held: HeldCampaign, now: Date): Promise<Review> {
  return await inTransaction(pool, async (client) => {
    const gate = (await lockCampaigns(client, [held], now)).get(keyOf(held));
    if (gate === undefined || !gate.isHeld) return { ...held, released: 0, isFree: false };
    const waiting = await client.query<{ call_id: string }>(waitingStatement, [
      held.accountId,
      held.campaign,
    ]);
    const count = await spareOf(client, held, gate, { waiting: waiting.rows.length, now });
    const released = waiting.rows.slice(0, count).map(({ call_id: callId }) => callId);
    if (released.length > 0) await client.query(releaseStatement, [released]);
    const isFree = waiting.rows.length === 0 && gate.released === 0;
    if (isFree) gate.free();
    await storeGates(client, [gate]);
    return { ...held, released: released.length, isFree };
  });
}

/** Returns how many of the waiting calls may be taken now. All, if the rule set no longer holds. */
async function spareOf(
  client: PoolClient,
  { accountId, ruleSet }: HeldCampaign,
  gate: CampaignGate,
  { waiting, now }: { readonly waiting: number; readonly now: Date },
): Promise<number> {
  const call = { accountId, rules: ruleSet };
  const current = (await readRules(client, [call], { deleted: 'apply' }))(call);
  const { most, allow = 0, hold } = current?.rules.abandoned ?? {};
  if (most === undefined || hold !== true) return waiting;
  return gate.spare({ most, allow }, waiting, now);
}
