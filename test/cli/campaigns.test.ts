// `offhook campaigns` through a gateway's API, with a real database.

import { describe, expect, test } from 'vitest';
import { listCampaigns, showCampaign } from '../../src/cli/rules/campaigns-commands.ts';
import { createCampaigns } from '../../src/store/rules/campaigns.ts';
import { forCliSuite } from './rig.ts';

describe('offhook campaigns', () => {
  const { rig, printed, notes, context } = forCliSuite(async ({ database }) => ({
    campaigns: createCampaigns(database),
  }));

  async function keepCampaign(campaign: string): Promise<void> {
    const { pool } = rig.database;
    const values = [rig.acme.accountId, campaign];
    await pool.query({
      text: `insert into campaigns (account_id, campaign, rule_set, began_at, window_from)
        values ($1, $2, 'default', now() - interval '1 hour', now() - interval '1 hour')`,
      values,
    });
    await pool.query({
      text: `insert into campaign_totals (account_id, campaign, slot, calls, answered_by_person,
          ftc_connected, ftc_abandoned, ofcom_connected, ofcom_abandoned)
        values ($1, $2, now() - interval '30 minutes', 900, 400, 390, 8, 388, 10)`,
      values,
    });
  }

  test('lists every campaign, over all pages', async () => {
    const names = Array.from({ length: 60 }, (_, index) => `c-${String(index).padStart(2, '0')}`);
    for (const name of names) await keepCampaign(name);

    await listCampaigns(context(), {});

    expect(printed).toHaveLength(60);
    expect(printed[0]).toBe('c-00  default  may call  8 of 400 abandoned, 2.00 % (ftc)');
    expect(printed.at(-1)).toMatch(/^c-59 /);
  });

  test('shows the windows of one campaign by both formulas', async () => {
    await keepCampaign('autumn offer/1');

    await showCampaign(context(), 'autumn offer/1', {});

    expect(printed).toHaveLength(3);
    expect(printed[1]).toMatch(
      /^ {2}ftc {4}\S+ {2}people 400, connected 390, abandoned 8: 2\.00 %, upper bound 3\.\d\d % \(95 % confidence\)$/,
    );
    expect(printed[2]).toMatch(/^ {2}ofcom .*connected 388, abandoned 10: 2\.51 %/);
  });

  test('prints JSON, and says if there is no campaign', async () => {
    await listCampaigns(context(), {});
    expect(notes).toEqual(['No campaign has called under a rule set.']);

    await keepCampaign('spring');
    await showCampaign(context(), 'spring', { json: true });
    expect(JSON.parse(printed[0] ?? '')).toMatchObject({ campaign: 'spring', held: null });

    await expect(showCampaign(context(), 'none', {})).rejects.toThrow(/No call of this campaign/);
  });
});
