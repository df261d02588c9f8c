// `offhook campaigns` through a gateway's API, with a real database.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { CliContext } from '../../src/cli/cli-context.ts';
import { listCampaigns, showCampaign } from '../../src/cli/rules/campaigns-commands.ts';
import { loadConfig } from '../../src/config.ts';
import { createCampaigns } from '../../src/store/rules/campaigns.ts';
import { startRig } from '../companion/support.ts';
import { forSuite } from '../support/opened.ts';
import { removeFolder, temporaryFolder } from './support.ts';

describe('offhook campaigns', () => {
  let folder: string;
  let httpUrl: string;
  const printed: string[] = [];
  const notes: string[] = [];
  const rig = forSuite(() =>
    startRig('pglite', {
      services: async ({ database }) => ({ campaigns: createCampaigns(database) }),
    }),
  );
  beforeAll(async () => {
    folder = await temporaryFolder();
    httpUrl = await rig.server.listen({ host: '127.0.0.1', port: 0 });
    const secrets = { webhookSecret: 'w', streamSecret: 's' };
    await writeFile(join(folder, 'dev-app.json'), JSON.stringify({ ...rig.acme, ...secrets }));
  });
  afterEach(async () => {
    printed.length = 0;
    notes.length = 0;
    await rig.clear();
  });
  afterAll(() => removeFolder(folder));

  const context = (): CliContext => ({
    config: loadConfig({ DATA_DIR: folder }),
    gateway: async () => ({ httpUrl }),
    print: (line) => printed.push(line),
    note: (line) => notes.push(line),
    interrupted: new AbortController().signal,
  });

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
      /^ {2}ftc {4}\S+ {2}people 400, connected 390, abandoned 8: 2\.00 %, at most 3\.\d\d % \(95 %\)$/,
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
