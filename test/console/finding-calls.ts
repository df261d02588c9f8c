// Finding calls in the list: filters in the address, totals, CSV, and one line for each call.

import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { eventually } from '../support/eventually.ts';
import { picture } from './pictures.ts';
import { accessible, fits, markup, type Stage, say } from './stage.ts';

/** People, machines, and each way to fail. The outcomes of the last ones come at once. */
const people = ['+12025550101', '+12025550108'];
const machines = ['+12025550111', '+12025550112'];
const failures = ['130', '131', '132', '133', '134', '135'].map((end) => `+12025550${end}`);
const busy = Array.from({ length: 7 }, () => '+12025550130');

export async function findCalls(stage: Stage, page: Page): Promise<void> {
  await placeCalls(stage);
  await oneLineEach(stage, page);
  await filterInAddress(stage, page);
  await totals(page);
  await download(stage, page);
  await otherZone(page);
  await byNumberAndId(stage, page);
  await typedAddress(stage, page);
  await byKeyboard(stage, page);
  await onPhone(page);
}

async function placeCalls({ gateway: { dialer } }: Stage): Promise<void> {
  const dial = async (target: string, more: object = {}) => {
    const body = { target: `tel:${target}`, machineDetection: 'detect', ...more };
    return (await dialer.dial(body)).callId;
  };
  const campaign = { campaign: 'spring' };
  const ids = await Promise.all([
    ...[...people, ...machines].map((number) => dial(number, campaign)),
    ...failures.map((number) => dial(number)),
  ]);
  const disconnect = { machineDetection: 'disconnect' };
  ids.push(await dial('+12025550110', disconnect));
  for (const number of busy) ids.push(await dial(number));
  ids.push(await dialFor('sales', { dialer }));
  await eventually(
    async () => {
      const { body } = await dialer.request('GET', '/api/public/calls?limit=200');
      const { calls } = body as { readonly calls: readonly { callId: string; state: string }[] };
      return calls.every(({ callId, state }) => !ids.includes(callId) || state === 'ended');
    },
    'the calls end',
    60_000,
  );
}

async function dialFor(botId: string, { dialer }: Pick<Stage['gateway'], 'dialer'>) {
  const path = `/api/1.1/public/bot/${botId}/V2/contactcenter/dialout`;
  const target = 'tel:+12025550130';
  const { body } = await dialer.request('POST', path, { botId, target, caller: '+15559876543' });
  return (body as { readonly callId: string }).callId;
}

/** Eighteen calls fit on a laptop's screen, and nothing in them wraps. */
async function oneLineEach({ base }: Stage, page: Page): Promise<void> {
  await page.setViewportSize({ width: 1280, height: 800 });
  for (const address of ['#/calls', '#/calls?from=2020-01-01&to=2100-01-01&zone=UTC']) {
    await page.goto(`${base}/console${address}`);
    await page.locator('.calls tbody tr:nth-child(18)').waitFor();
    const [bottom, tallest, widest] = (await page.evaluate(`[
      document.querySelector('.calls tbody tr:nth-child(18)').getBoundingClientRect().bottom,
      Math.max(...[...document.querySelectorAll('.calls tbody tr')].map((row) => row.offsetHeight)),
      document.documentElement.scrollWidth,
    ]`)) as readonly [number, number, number];
    assert.ok(bottom <= 800, `${address}: 18 calls end at ${bottom} px`);
    assert.ok(tallest <= 34 && widest <= 1280, `a line is ${tallest} px, the page ${widest} px`);
  }
  const badge = page.locator('.calls .result', { hasText: 'Blocked by carrier' });
  assert.match((await badge.getAttribute('title')) ?? '', /^A carrier blocked the call/);
  await page.locator('tr', { hasText: 'Machine · hung up' }).first().waitFor();
  await page.locator('tr', { hasText: 'No such number' }).getByText('+1 202 555 0134').waitFor();
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.goto(`${base}/console#/calls`);
  await page.locator('.calls tbody tr').first().waitFor();
  await accessible(page, 'calls');
  await picture(page, 'calls');
  say('18 calls fit on a laptop’s screen, one line each, with one badge each');
}

const filter = (page: Page, name: string) => page.locator(`.filters [name="${name}"]`);
const rows = (page: Page) => page.locator('.calls tbody tr');

async function countRows(page: Page, count: number): Promise<void> {
  await eventually(async () => (await rows(page).count()) === count, `${count} calls`, 60_000);
}

/** Each change is an address that a colleague can open, and the back button leads to the last. */
async function filterInAddress({ base }: Stage, page: Page): Promise<void> {
  await page.goto(`${base}/console#/calls`);
  await filter(page, 'period').selectOption('today');
  await filter(page, 'bot').fill('sales');
  await filter(page, 'bot').press('Enter');
  await countRows(page, 1);
  await filter(page, 'result').selectOption('busy');
  await page.waitForURL(/result=busy/);
  const address = page.url();
  assert.match(address, /#\/calls\?from=\d{4}-\d\d-\d\d&to=.*&zone=.*&bot=sales&result=busy$/);
  await countRows(page, 1);
  await filter(page, 'result').selectOption('declined');
  await page.getByText('No call matches these filters.').waitFor();
  await page.goBack();
  await countRows(page, 1);
  assert.equal(await filter(page, 'result').inputValue(), 'busy');
  const colleague = await page.context().newPage();
  await colleague.goto(address);
  await countRows(colleague, 1);
  assert.equal(await filter(colleague, 'bot').inputValue(), 'sales');
  await colleague.close();
  await rows(page).getByRole('link').click();
  await page.getByRole('heading', { level: 1 }).waitFor();
  await page.goBack();
  await countRows(page, 1);
  assert.equal(page.url(), address);
  await picture(page, 'calls-filtered');
  await accessible(page, 'filtered calls');
  say('a filtered list has an address, and the back button leads to the list before');
}

async function totals(page: Page): Promise<void> {
  const line = page.locator('.totals');
  await line.getByText('answered').waitFor();
  await eventually(
    async () => ((await line.textContent()) ?? '').includes('call1answered (0 %)0'),
    'the totals are those of the filters',
    60_000,
  );
  await filter(page, 'campaign').fill('spring');
  await filter(page, 'campaign').press('Enter');
  await page.getByText('The gateway keeps no totals by number or campaign.').waitFor();
  say('the totals are of the filtered calls, or say why there are none');
}

async function download({ base }: Stage, page: Page): Promise<void> {
  await page.goto(`${base}/console#/calls?bot=sales`);
  await countRows(page, 1);
  const path = await page.getByRole('link', { name: 'Export CSV' }).getAttribute('href');
  const csv = await page.evaluate(`fetch('${path}').then((answer) => answer.text())`);
  const lines = String(csv).trimEnd().split('\r\n');
  assert.equal(lines.length, 2, 'a header and a call');
  assert.ok(lines[1]?.includes('+12025550130'));
  say('the CSV file has what the list shows');
}

async function otherZone(page: Page): Promise<void> {
  await filter(page, 'period').selectOption('days');
  await filter(page, 'zone').selectOption('Asia/Tokyo');
  await page.getByText('Times are those of Asia/Tokyo.').waitFor();
  await filter(page, 'from').fill('2020-02-03');
  await filter(page, 'to').fill('2020-02-03');
  await page.waitForURL(/from=2020-02-03&to=2020-02-03&zone=Asia%2FTokyo&bot=sales/);
  await page.getByText('No call matches these filters.').waitFor();
  await picture(page, 'calls-filtered-empty');
  await page.getByRole('button', { name: 'Show all calls' }).click();
  await page.locator('.calls tbody tr:nth-child(18)').waitFor();
  say('days are those of the zone that the user chose');
}

async function byNumberAndId({ base, gateway }: Stage, page: Page): Promise<void> {
  const field = filter(page, 'number');
  // As the page itself writes it.
  await field.fill('+1 202 555 0135');
  await field.press('Enter');
  await countRows(page, 1);
  const address = await rows(page).getByRole('link').getAttribute('href');
  await page.goto(`${base}/console#/calls`);
  await page.locator('.calls tbody tr:nth-child(18)').waitFor();
  await field.fill(address?.split('/').pop() ?? '');
  await field.press('Enter');
  await page.waitForURL(`**${address}`);
  await page.getByRole('heading', { level: 1 }).waitFor();
  // Calls come in while somebody types.
  await page.goto(`${base}/console#/calls`);
  await filter(page, 'campaign').pressSequentially('spr');
  await gateway.dialer.dial({ target: 'sip:newcomer@127.0.0.1:9' });
  await page.locator('tr', { hasText: 'newcomer' }).waitFor();
  assert.equal(await filter(page, 'campaign').inputValue(), 'spr');
  await filter(page, 'campaign').pressSequentially('ing');
  await page.keyboard.press('Enter');
  await page.waitForURL(/campaign=spring/);
  await countRows(page, 4);
  say('a number is found as the page writes it, and an id opens its call');
}

const tightMarkup = '<img/src=x/onerror=window.stranger=1>';

/** An address may come from anybody. */
async function typedAddress({ base }: Stage, page: Page): Promise<void> {
  const hostile = encodeURIComponent(markup);
  for (const name of ['campaign', 'bot', 'number', 'zone', 'cursor', 'result', 'from']) {
    await page.goto(`${base}/console#/calls?${name}=${hostile}`);
    await page.getByRole('heading', { name: 'Calls' }).waitFor();
    await page.locator('.calls, .empty, [role="alert"]').first().waitFor();
  }
  await page.goto(`${base}/console#/calls?campaign=${hostile}`);
  await page.getByRole('alert').getByText('campaign').first().waitFor();
  assert.equal(await filter(page, 'campaign').inputValue(), markup);
  await page.goto(`${base}/console#/calls?campaign=${encodeURIComponent(tightMarkup)}`);
  await page.getByText('No call matches these filters.').waitFor();
  assert.equal(await filter(page, 'campaign').inputValue(), tightMarkup);
  const found = await page.evaluate(
    "[String(globalThis.stranger), document.querySelectorAll('main img, main script').length]",
  );
  assert.deepEqual(found, ['undefined', 0]);
  say('markup in an address is text');
}

async function byKeyboard({ base }: Stage, page: Page): Promise<void> {
  // The heading gets the focus when the page opens, not when its filters change.
  await page.goto(`${base}/console#/rules`);
  await page.getByRole('heading', { name: 'Rules' }).waitFor();
  await page.goto(`${base}/console#/calls`);
  await page.locator('h1:focus').filter({ hasText: 'Calls' }).waitFor();
  await page.getByRole('link', { name: 'Export CSV' }).waitFor();
  await page.getByRole('link', { name: 'machines' }).waitFor();
  for (const label of ['people', 'machines', 'Export CSV', 'Dial']) {
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate('document.activeElement.textContent'), label);
  }
  await page.keyboard.press('Tab');
  await page.locator('[name="number"]:focus').waitFor();
  await page.keyboard.press('Tab');
  await page.keyboard.press('ArrowDown');
  await page.waitForURL(/\?from=/);
  const focused = await page.evaluate('document.activeElement.labels[0].textContent');
  assert.match(String(focused), /^When/, 'the focus stays on the filter');
  say('filters work by keyboard alone');
}

/** A phone folds the filters behind a button, which says how many are set. */
async function onPhone(page: Page): Promise<void> {
  await page.setViewportSize({ width: 390, height: 844 });
  await rows(page).first().waitFor();
  await fits(page);
  await accessible(page, 'calls on a phone');
  const button = page.getByRole('button', { name: 'Filters (1)' });
  await filter(page, 'result').waitFor({ state: 'hidden' });
  await button.focus();
  await page.keyboard.press('Enter');
  assert.equal(await button.getAttribute('aria-expanded'), 'true');
  await page.keyboard.press('Tab');
  await page.locator('[name="period"]:focus').waitFor();
  await filter(page, 'result').selectOption('busy');
  await page.getByRole('button', { name: 'Filters (2)' }).waitFor();
  await fits(page);
  await accessible(page, 'unfolded filters on a phone');
  await picture(page, 'calls-filters-open');
  await page.setViewportSize({ width: 1280, height: 900 });
}
