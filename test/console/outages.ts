// The state of the servers while they go away, on the first page and on their own: both follow
// without a reload, and work while the database is away, even after a reload.

import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { eventually } from '../support/eventually.ts';
import { picture } from './pictures.ts';
import { accessible, fits, type Stage, say, signInBy } from './stage.ts';
import type { TwoNodes } from './two-nodes.ts';

/** Each node says the same as `/ready`. */
type Ready = { readonly servers: readonly { readonly name: string; readonly state: string }[] };

/** Stops PostgreSQL for good, so this must be the last part of the test. */
export async function watchOutages(stage: Stage, nodes: TwoNodes): Promise<void> {
  const base = nodes.here.runtime.httpUrl;
  const page = await (await stage.open(base)).newPage();
  await signInBy(nodes.here, page, base);
  await allIsWell(page);
  await engineAway(page, nodes);
  await databaseAway(page, nodes, base);
  await page.context().close();
}

async function allIsWell(page: Page): Promise<void> {
  await page.getByRole('heading', { name: 'Today', level: 1 }).waitFor();
  await page.getByRole('status').getByText('All is well').waitFor();
  await page.getByRole('link', { name: 'All servers' }).click();
  await page.getByRole('heading', { name: 'Servers' }).waitFor();
  await page.getByRole('status').getByText('All is well').waitFor();
  for (const name of ['PostgreSQL', 'NATS', 'drachtio', 'Gateway here', 'Gateway there'])
    await rowOf(page, name, 'Up').waitFor();
  await accessible(page, 'servers');
  await picture(page, 'servers');
  say('an operator sees that all is well, and each server');
}

async function engineAway(page: Page, { engine }: TwoNodes): Promise<void> {
  await engine.kill();
  await rowOf(page, 'drachtio', 'Away').getByText('no call can be dialled').waitFor();
  await page.getByRole('status').getByText('1 of 7 has a problem: drachtio.').waitFor();
  await engine.start();
  await page.getByRole('status').getByText('All is well').waitFor();
  say('a SIP engine goes and comes back, and the page follows');
}

async function databaseAway(page: Page, nodes: TwoNodes, base: string) {
  await nodes.stopDatabase();
  const row = rowOf(page, 'PostgreSQL', 'Away');
  await row.getByText('Calls that are up continue').waitFor();
  await page.getByRole('status').getByText('1 of 7 has a problem: PostgreSQL.').waitFor();
  await rowOf(page, 'Gateway there', 'Unknown').waitFor();
  const since = row.locator('[data-name="Since"]');
  const before = await since.textContent();
  await eventually(async () => (await since.textContent()) !== before, 'the time goes on');
  await picture(page, 'servers-away');
  await page.goto(`${base}/console#/today`);
  await row.getByText('Calls that are up continue').waitFor();
  assert.equal(await rowOf(page, 'NATS', 'Up').count(), 0, 'only servers with a problem');
  await accessible(page, 'today during an outage');
  await picture(page, 'today-away');
  await page.goto(`${base}/console#/servers`);
  await page.reload();
  await row.waitFor();
  const { servers } = (await (await fetch(`${base}/ready`)).json()) as Ready;
  assert.equal(servers.find(({ name }) => name === 'PostgreSQL')?.state, 'away');
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width: 390, height: 844 });
    await fits(page);
    await accessible(page, `an outage on a phone, ${colorScheme}`);
  }
  // Nothing else works without the database.
  const [cookie] = await page.context().cookies();
  const headers = { cookie: `${cookie?.name}=${cookie?.value}` };
  const answer = await fetch(`${base}/console/api/operate/nodes`, { headers });
  assert.equal(answer.status, 503);
  say('the page says what an outage of the database affects, also after a reload');
}

function rowOf(page: Page, name: string, state: string) {
  return page
    .locator('.servers tbody tr')
    .filter({ has: page.getByRole('rowheader', { name }) })
    .filter({ has: page.locator('[data-name="State"]', { hasText: state }) });
}
