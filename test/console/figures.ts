// The first page and the operators' figures: of calls that were really placed, and of busy days
// that are written into the totals.

import assert from 'node:assert/strict';
import pg from 'pg';
import type { Page } from 'playwright-core';
import { eventually } from '../support/eventually.ts';
import { insertRows } from '../support/tables.ts';
import { picture } from './pictures.ts';
import { accessible, fits, markup, type Stage, say, signInBy } from './stage.ts';
import type { TwoNodes } from './two-nodes.ts';

/** After some calls, one of which owes a notification to a receiver that always fails. */
export async function watchToday({ base }: Stage, page: Page, failing: string): Promise<void> {
  await page.goto(`${base}/console#/calls`);
  await page.getByRole('link', { name: 'Today' }).click();
  await page.getByRole('heading', { name: 'Today', level: 1 }).waitFor();
  await page.getByRole('status').getByText('All is well').waitFor();
  await page.locator('.figure', { hasText: 'Machines' }).locator('.big').getByText('1').waitFor();
  await page.locator('.figure canvas').nth(5).waitFor();
  const receiver = page.locator('tr', { hasText: failing });
  await receiver.locator('[data-name="Waiting"]').getByText('1 call').waitFor();
  await receiver.getByRole('button', { name: `Try now: ${failing}` }).click();
  await receiver.getByText(/Trying 1 call now|Being tried already/).waitFor();
  await accessible(page, 'today');
  await picture(page, 'today');
  await page.getByRole('link', { name: 'Machines' }).click();
  await page.getByRole('heading', { name: 'Calls', level: 1 }).waitFor();
  await page.goto(`${base}/console#/callers`);
  // The callee of an earlier call saw this caller ID.
  await page.getByRole('rowheader', { name: "1'-alert(1)-'" }).waitFor();
  await accessible(page, 'caller IDs');
  await picture(page, 'callers');
  say('Today has figures, a failing receiver, and a button that tries it again');
}

/** Each bar of Detection leads to its calls. */
export async function watchDetection({ base }: Stage, page: Page): Promise<void> {
  await page.goto(`${base}/console#/detection`);
  await page.getByRole('link', { name: 'Dense speech' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Reason of the first verdict: Dense speech' }).waitFor();
  await accessible(page, 'the calls of a bar');
  await picture(page, 'detection-bar');
  await page.locator('main tbody a').first().click();
  await page.locator('.timeline').waitFor();
  await page.goto(`${base}/console#/detection?constructor=1`);
  await page.getByRole('link', { name: 'Dense speech' }).waitFor();
  await page.goto(`${base}/console#/detection?reason=${encodeURIComponent(markup)}`);
  await page.getByText('No such call in the last day.').waitFor();
  assert.equal(await page.evaluate('window.stranger'), undefined);
  say('the bars of Detection lead to their calls');
}

const dayMs = 86_400_000;
const quarterMs = 900_000;
const trunks = ['carrier', 'backup'];
const callers = ['12025550101', '12025550102', markup.slice(0, 60)];

/** Shares of the outcomes of calls, with their verdicts. */
const kinds = [
  ['completed', 'amd_human_detected', 0.28],
  ['transferred', 'amd_human_detected', 0.04],
  ['voicemail-left', 'amd_machine_detected', 0.16],
  ['machine', 'amd_machine_detected', 0.09],
  ['no-answer', '', 0.27],
  ['busy', '', 0.1],
  ['blocked', '', 0.06],
] as const;

/** Calls in the quarters of an hour of working days, by the clock of this machine. */
async function fill(pool: pg.Pool): Promise<void> {
  const { rows } = await pool.query<{ account_id: string }>('select account_id from apps limit 1');
  const accountId = rows[0]?.account_id ?? '';
  const nowMs = Date.now();
  const quarters = Array.from({ length: (15 * dayMs) / quarterMs }, (_, index) => {
    const slot = new Date((Math.floor(nowMs / quarterMs) - index) * quarterMs);
    return { slot, calls: callsIn(slot) };
  }).filter(({ calls }) => calls > 0);
  const common = { accountId, botId: 'bot-1' };
  const totals = quarters.flatMap((quarter) =>
    trunks.flatMap((trunk, index) =>
      kinds.map((kind) => ({ ...common, trunk, ...totalOf(quarter, kind, index + 1) })),
    ),
  );
  const byCaller = quarters.flatMap(({ slot, calls }) =>
    callers.map((caller, index) => ({
      ...{ ...common, slot, caller, calls, answered: Math.round(calls / 2) },
      ...{ short: Math.round(calls / 20), blocked: Math.round((calls * index) / 12) },
    })),
  );
  await insertRows(pool, 'call_totals', totals);
  await insertRows(pool, 'caller_totals', byCaller);
  await failReceiver(pool, accountId, nowMs);
}

type Quarter = { readonly slot: Date; readonly calls: number };

/** Most calls are made around one o'clock, and no two days are the same. */
function callsIn(slot: Date): number {
  const hour = slot.getHours() + slot.getMinutes() / 60;
  const busy = Math.max(0, Math.sin(((hour - 7.5) / 12) * Math.PI)) * 120;
  return Math.round(busy * (1 + 0.3 * Math.sin(slot.getTime() / 7_000_000)));
}

function totalOf(quarter: Quarter, [outcome, verdict, share]: (typeof kinds)[number], of: number) {
  const calls = Math.round((quarter.calls * share) / of);
  const answered = verdict === '' ? 0 : calls;
  return {
    ...{ slot: quarter.slot, outcome, verdict, calls, answered, talkMs: answered * 30_000 },
    ...{ status: answered > 0 ? 'completed' : 'failed', short: Math.round(answered * 0.08) },
  };
}

/** A receiver that fails, and calls that wait for it. */
async function failReceiver(pool: pg.Pool, accountId: string, nowMs: number): Promise<void> {
  const origin = 'https://crm.example.com';
  const at = (minutes: number) => new Date(nowMs + minutes * 60_000);
  const failing = { failingSince: at(-42), failures: 318, lastFailedAt: at(-1) };
  await insertRows(pool, 'notification_endpoints', [
    { appId: 'app-1', accountId, origin, ...failing, lastError: markup.slice(0, 60) },
  ]);
  const day = new Date(nowMs).toISOString().slice(0, 10);
  await insertRows(
    pool,
    'notification_lanes',
    Array.from({ length: 57 }, (_, index) => ({
      ...{ callId: `call-waiting-${index}`, day, accountId, origin },
      nextAttemptAt: at(600 + index),
    })),
  );
}

/** Signed in as an operator of two gateways with PostgreSQL. */
export async function watchFigures(stage: Stage, nodes: TwoNodes): Promise<void> {
  const base = nodes.here.runtime.httpUrl;
  const pool = new pg.Pool({ connectionString: nodes.databaseUrl });
  try {
    await fill(pool);
  } finally {
    await pool.end();
  }
  const page = await (await stage.open(base)).newPage();
  await signInBy(nodes.here, page, base);
  await figuresOfToday(page, nodes);
  await figuresOfTrunks(page, base);
  await page.context().close();
}

async function figuresOfToday(page: Page, { here }: TwoNodes): Promise<void> {
  await page.getByRole('heading', { name: 'Today', level: 1 }).waitFor();
  const midnight = new Date();
  midnight.setHours(0, 0, 0, 0);
  const period = new URLSearchParams({
    from: midnight.toISOString(),
    to: new Date(midnight.getTime() + dayMs).toISOString(),
  });
  const { body } = await here.dialer.request(
    'GET',
    `/api/public/calls/summary?${period.toString()}`,
  );
  const { accepted } = (body as { readonly total: { readonly accepted: number } }).total;
  const calls = page.locator('.figure').first();
  await calls.locator('.big').getByText(accepted.toLocaleString('en-US')).waitFor();
  await calls.getByText(/^Last \w+ until \d\d:\d\d: [\d,]+/).waitFor();
  await page.locator('.figure canvas').nth(5).waitFor();
  await page.locator('tr', { hasText: 'crm.example.com' }).getByText('57 calls').waitFor();
  assert.equal(await page.evaluate('window.stranger'), undefined);
  await page.getByRole('link', { name: 'Calls', exact: true }).first().waitFor();
  await accessible(page, 'today with figures');
  await picture(page, 'today-busy');
  await page.getByText('The hours as a table').click();
  await page.getByRole('row', { name: /^09:00/ }).waitFor();
  await accessible(page, 'the hours as a table');
  await picture(page, 'today-table');
  await keyboardReachesButton(page);
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width: 390, height: 844 });
    await fits(page);
    await accessible(page, `today on a phone, ${colorScheme}`);
  }
  await page.emulateMedia({ colorScheme: null });
  await page.setViewportSize({ width: 1280, height: 900 });
  say('Today compares a busy day with that of last week, also as a table');
}

/** Tabs from the heading to the button, and presses it. */
async function keyboardReachesButton(page: Page): Promise<void> {
  await page.locator('h1').focus();
  const name = 'Try now: https://crm.example.com';
  await eventually(async () => {
    await page.keyboard.press('Tab');
    return (await page.evaluate("document.activeElement.getAttribute('aria-label')")) === name;
  }, 'the button has the focus');
  await page.keyboard.press('Enter');
  await page.getByText('Trying 57 calls now.').waitFor();
}

async function figuresOfTrunks(page: Page, base: string): Promise<void> {
  await page.goto(`${base}/console#/trunks`);
  const row = page
    .getByRole('table', { name: 'Last 24 hours' })
    .getByRole('row', { name: 'carrier' });
  await row.locator('[data-name="Blocked"]').getByText('%').first().waitFor();
  await row.locator('canvas').nth(1).waitFor();
  const caller = page.getByRole('row', { name: '1 202 555 0101' });
  await caller.getByRole('img', { name: 'Blocked calls of 1 202 555 0101 by day' }).waitFor();
  await accessible(page, 'trunks with figures');
  await picture(page, 'trunks-busy');
  await page.setViewportSize({ width: 390, height: 844 });
  await fits(page);
  await page.setViewportSize({ width: 1280, height: 900 });
  say('Trunks and caller IDs have their shares, and trunks their trend');
}
