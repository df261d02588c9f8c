// Rule sets and suppressions in the console, how errors are shown, and what calls say about rules.

import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { eventually } from '../support/eventually.ts';
import { picture } from './pictures.ts';
import { accessible, fits, markup, type Stage, say, signInBy, untilEnded } from './stage.ts';

export async function setRules(stage: Stage): Promise<void> {
  const context = await stage.open();
  const page = await context.newPage();
  await signInBy(stage.gateway, page, stage.base);
  await writeRuleSet(stage, page);
  await readVersions(page);
  await checkNumber(stage, page);
  await suppressNumber(stage, page);
  await refusedCall(stage, page);
  await holdCampaign(stage, page);
  await removeAll(stage, page);
  await context.close();
}

const number = '+12025550130';
/** As the pages write it. */
const written = '+1 202 555 0130';

async function writeRuleSet({ base }: Stage, page: Page): Promise<void> {
  await page.goto(`${base}/console#/rules`);
  await page.getByText('No rule sets.').waitFor();
  await accessible(page, 'no rule sets');
  await page.getByLabel('Name').fill('evening');
  await page.getByRole('button', { name: 'Add a rule set' }).click();
  const editor = page.getByLabel('Document, as JSON');
  await editor.fill('{ "hours": ');
  await page.getByRole('button', { name: 'Store' }).click();
  await page.getByRole('alert').getByText('This is not JSON').waitFor();
  const windows = '[\n  { "days": "mon-sun", "from": "18:00", "until": "08:00" }\n]';
  await editor.fill(`{ "hours": { "windows": ${windows} }, "rest": {} }`);
  await page.getByRole('button', { name: 'Store' }).click();
  const error = page.getByRole('alert').getByRole('button', { name: 'hours.windows.0.until' });
  await page.getByRole('alert').getByText('does not cross midnight').waitFor();
  await page.getByRole('alert').getByText('needs afterAbandoned or afterAnswered').waitFor();
  await page.locator('.trouble button:focus').waitFor();
  await picture(page, 'rule-set-refused');
  await accessible(page, 'a rule set that was refused');
  await error.click();
  const selected = (await page.evaluate(
    `(({ value, selectionStart, selectionEnd }) => value.slice(selectionStart, selectionEnd))(document.activeElement)`,
  )) as string;
  assert.equal(selected, '"until"', 'the member is selected in the text');
  await editor.fill(everyDay('18:00', '24:00'));
  await page.getByRole('button', { name: 'Store' }).click();
  await page.getByText('Version 1, stored').waitFor();
  say('a rule set is stored after its errors were shown at their members');
}

const everyDay = (from: string, until: string) =>
  JSON.stringify({ hours: { windows: [{ days: 'mon-sun', from, until }] } }, null, 2);

async function readVersions(page: Page): Promise<void> {
  const editor = page.getByLabel('Document, as JSON');
  await editor.fill(everyDay('19:00', '24:00'));
  await page.getByRole('button', { name: 'Store' }).click();
  await page.getByText('Version 2, stored').waitFor();
  await page.getByRole('button', { name: 'Store' }).click();
  await page.getByText('Nothing has changed.').waitFor();
  await page.locator('.bar select').selectOption('1');
  await page.getByText('Version 1, stored').waitFor();
  assert.match(await editor.inputValue(), /18:00/);
  await picture(page, 'rule-set');
  await page.getByRole('button', { name: 'Store' }).click();
  await page.getByText('Version 3, stored').waitFor();
  await accessible(page, 'a rule set');
  say('earlier versions can be read, and stored again');
}

/** A zone in which it is morning now, so that the evening's window is closed. */
function morningZone(): string {
  const offsetH = ((9 - new Date().getUTCHours() + 36) % 24) - 12;
  return offsetH === 0 ? 'Etc/GMT' : `Etc/GMT${offsetH > 0 ? '-' : '+'}${Math.abs(offsetH)}`;
}

async function checkNumber({ base }: Stage, page: Page): Promise<void> {
  await page.goto(`${base}/console#/rules`);
  await page.getByRole('link', { name: 'evening' }).waitFor();
  const form = page.locator('section', { hasText: 'Check a number' });
  await form.getByLabel('Number').fill('busy');
  await form.getByRole('button', { name: 'Check' }).click();
  await form.getByText('May be called now.').waitFor();
  await form.getByLabel('Rule set').selectOption('evening');
  await form.getByLabel('Time zone').fill(morningZone());
  await form.getByRole('button', { name: 'Check' }).click();
  await form.getByText('May not be called: outside the calling hours until').waitFor();
  await form.getByText('evening, version 3.').waitFor();
  await picture(page, 'rules');
  await accessible(page, 'rules');
  await form.getByLabel('Time zone').fill('Mars/Olympus');
  await form.getByRole('button', { name: 'Check' }).click();
  await form.getByRole('alert').getByText('timeZone').waitFor();
  say('a check says what the rules would decide');
}

async function suppressNumber({ base }: Stage, page: Page): Promise<void> {
  await page.goto(`${base}/console#/suppressions`);
  await page.getByText('No number is suppressed.').waitFor();
  await picture(page, 'suppressions-empty');
  await page.getByRole('textbox', { name: 'Number' }).fill('+1 (202) 555-0130');
  await page.getByRole('button', { name: 'Look up' }).click();
  await page.getByText(`${written} is not suppressed.`).waitFor();
  await page.getByLabel('Source').fill(markup.slice(0, 60));
  await page.getByRole('button', { name: 'Suppress' }).click();
  await page.getByText(`${written} is suppressed. No call to it rings.`).waitFor();
  await page.locator('tr', { hasText: written }).getByText('<img src=x').waitFor();
  await page.getByRole('button', { name: 'Look up' }).click();
  await page.getByText(`${written} is suppressed: Opt-out, from <img src=x`).waitFor();
  await page.getByRole('textbox', { name: 'Number' }).fill('202 555 0131');
  await page.getByRole('button', { name: 'Suppress' }).click();
  await page.getByRole('alert').getByText('write +1 202 555 0131').waitFor();
  await page.locator('input[name="number"][aria-invalid]').waitFor();
  await picture(page, 'suppressions');
  await accessible(page, 'suppressions');
  assert.equal(await page.evaluate('window.stranger'), undefined);
  say('a number is suppressed, and what was typed is shown as text');
}

/** Rings nobody: the carrier's 486 would end the call with the outcome `busy`. */
async function refusedCall({ base, gateway }: Stage, page: Page): Promise<void> {
  const { callId } = await gateway.dialer.dial({ target: `tel:${number}` });
  await page.goto(`${base}/console#/calls/${callId}`);
  await page.locator('.story', { hasText: 'Not placed: the number is suppressed' }).waitFor();
  await picture(page, 'call-not-permitted');
  await page.goto(`${base}/console#/calls`);
  await page.locator('tr', { hasText: 'Not permitted: suppressed' }).waitFor();
  await picture(page, 'calls-not-permitted');
  say('a call that a rule ended says so');
}

/** Nobody talks to the first person, so the campaign's second call waits. */
async function holdCampaign({ base, gateway }: Stage, page: Page): Promise<void> {
  const { dialer } = gateway;
  const abandoned = { formula: 'ftc', most: 3, allow: 0, hold: true };
  const put = await dialer.request('PUT', '/api/public/rules/strict', { abandoned });
  assert.equal(put.status, 200);
  const call = {
    target: 'tel:+12025550102',
    machineDetection: 'detect',
    campaign: 'autumn / 1',
    rules: 'strict',
  };
  const first = await dialer.dial(call);
  await page.goto(`${base}/console#/calls/${first.callId}`);
  await page.locator('.row.event', { hasText: 'abandoned' }).first().waitFor();
  await dialer.end(first.callId);
  await untilEnded(page);
  const second = await dialer.dial(call);
  await page.goto(`${base}/console#/calls/${second.callId}`);
  await page
    .locator('.story', { hasText: 'Held: too many of the campaign’s calls were abandoned' })
    .waitFor();
  await page.goto(`${base}/console#/calls`);
  await page.locator('tr', { hasText: 'Held: too many abandoned' }).waitFor();
  await picture(page, 'calls-held');
  await page.goto(`${base}/console#/today`);
  const held = page.getByRole('row', { name: 'too many of the campaign’s calls were abandoned' });
  await held.locator('[data-name="Waiting calls"]').getByText('1', { exact: true }).waitFor();
  await page.goto(`${base}/console#/campaigns`);
  await page.locator('tr', { hasText: 'autumn / 1' }).getByText('held').waitFor();
  await accessible(page, 'campaigns');
  await picture(page, 'campaigns');
  await page.getByRole('link', { name: 'autumn / 1' }).click();
  await page.getByText('Too many calls were abandoned.').waitFor();
  const curve = page.getByRole('img', { name: 'FTC, 30 days: 100.00 %' });
  await curve.waitFor();
  await accessible(page, 'a campaign');
  await picture(page, 'campaign');
  await page.setViewportSize({ width: 390, height: 844 });
  await fits(page);
  await page.setViewportSize({ width: 1280, height: 900 });
  await dialer.end(second.callId);
  assert.equal((await dialer.request('DELETE', '/api/public/rules/strict')).status, 200);
  say('a campaign that abandons people is held, and the page says so in words and as a curve');
}

async function removeAll({ base, gateway }: Stage, page: Page): Promise<void> {
  await page.setViewportSize({ width: 390, height: 844 });
  for (const place of ['rules', 'rules/evening', 'suppressions']) {
    await page.goto(`${base}/console#/${place}`);
    await page.locator('main table, main .editor').first().waitFor();
    await fits(page);
    await accessible(page, `${place} on a phone`);
  }
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.getByRole('button', { name: `Remove ${number}` }).click();
  await page.getByRole('dialog').getByText('Allow calls to').waitFor();
  await picture(page, 'suppression-removal');
  await page.getByRole('button', { name: 'Cancel' }).click();
  assert.equal(await statusOf(gateway, `suppressions/${encodeURIComponent(number)}`), 200);
  await page.getByRole('button', { name: `Remove ${number}` }).click();
  await page.getByRole('button', { name: 'Allow calls' }).click();
  await page.getByText('No number is suppressed.').waitFor();
  await page.goto(`${base}/console#/rules/evening`);
  await page.getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await page.getByText('No rule sets.').waitFor();
  await eventually(
    async () => (await statusOf(gateway, 'rules/evening')) === 404,
    'the rule set is deleted',
  );
  say('a suppression and a rule set are removed after a question');
}

async function statusOf({ dialer }: Stage['gateway'], path: string): Promise<number> {
  return (await dialer.request('GET', `/api/public/${path}`)).status;
}
