// The recording of a call: it is played with its cursor on the call's clock, and deleted. The page
// shows what else may become of a recording, and that nothing in it becomes markup.

import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { command } from './call-story.ts';
import { picture } from './pictures.ts';
import { accessible, fits, markup, openCall, type Stage, say } from './stage.ts';

/** Somebody who says a word and waits. */
const person = 'tel:+12025550102';

export async function listen(stage: Stage, page: Page): Promise<void> {
  const callId = await recordCall(stage, page);
  await play(page);
  await seek(page);
  await fitsPhone(page);
  await showStates(stage, page, callId);
  await storeAway(stage, page, callId);
  await mayNotListen(stage, callId);
  await remove(stage, page, callId);
}

/** Records for a few seconds, with a pause that is cut out. */
async function recordCall(stage: Stage, page: Page): Promise<string> {
  const { callId } = await stage.gateway.dialer.dial({
    ...{ target: person, recording: { fill: 'cut' } },
  });
  await page.goto(`${stage.base}/console#/calls/${callId}`);
  const recorder = page.locator('.recorder');
  await recorder.getByText('Being recorded since').waitFor();
  await picture(page, 'recording-live');
  await record(stage, callId, 'pause');
  await recorder.getByText('Paused by a command').waitFor();
  await accessible(page, 'a paused recording');
  await page.evaluate('new Promise((resolve) => setTimeout(resolve, 2_000))');
  await record(stage, callId, 'resume');
  await recorder.getByText('Being recorded since').waitFor();
  await page.evaluate('new Promise((resolve) => setTimeout(resolve, 2_000))');
  await stage.gateway.dialer.end(callId);
  await recorder.getByText('Stored:').waitFor();
  await recorder.getByText(/Paused once, [\d.]+ s in all, which is cut out/).waitFor();
  say('a recorded call says that it is being recorded, paused, and stored');
  return callId;
}

async function record(stage: Stage, callId: string, action: string): Promise<void> {
  assert.equal(await command(stage, callId, { command: 'record', action }), 202);
}

/** Plays to the end, by keyboard alone. The cursor skips the pause, which isn't in the file. */
async function play(page: Page): Promise<void> {
  await picture(page, 'recording-stored');
  await accessible(page, 'a stored recording');
  const button = page.getByRole('button', { name: 'Play', exact: true });
  await button.focus();
  await page.evaluate(`
    globalThis.places = [];
    new MutationObserver(() => places.push(parseFloat(document.querySelector('.cursor').style.left)))
      .observe(document.querySelector('.cursor'), { attributes: true });
  `);
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Pause', exact: true }).waitFor();
  await page.locator('.row.reached', { hasText: 'recording-started' }).waitFor();
  await page.locator('.row.reached', { hasText: 'recording-resumed' }).waitFor();
  await button.waitFor();
  const { steps, fileMs, callMs, pausedMs } = (await page.evaluate(`({
    steps: places.slice(1).map((place, index) => place - places[index]),
    fileMs: document.querySelector('audio').duration * 1_000,
    callMs: Number(document.querySelector('.player input').max),
    pausedMs: Number(/([\\d.]+) s in all/.exec(document.querySelector('.state').textContent)[1]) * 1_000,
  })`)) as Readonly<Record<'fileMs' | 'callMs' | 'pausedMs', number>> & { steps: number[] };
  assert.ok(Math.abs(callMs - pausedMs - fileMs) < 60, `${callMs} - ${pausedMs} is ${fileMs}`);
  assert.ok(steps.length > 10, 'the cursor moves');
  assert.ok(
    steps.every((step) => step >= -0.01),
    'the cursor never goes back',
  );
  const [person, us] = (await page.evaluate(`
    fetch(document.querySelector('audio').src)
      .then((answer) => answer.arrayBuffer())
      .then((bytes) => new OfflineAudioContext(2, 1, 8_000).decodeAudioData(bytes))
      .then((sound) => [0, 1].map((channel) => Math.max(...sound.getChannelData(channel))))
  `)) as readonly number[];
  assert.ok(person !== undefined && person > 0.05, 'the person is on the left');
  assert.ok(us !== undefined && us < 0.01, 'nobody talked to the person');
  say('Chromium plays µ-law in WAV, and the cursor follows the call’s clock over a pause');
}

async function seek(page: Page): Promise<void> {
  const slider = page.getByRole('slider', { name: 'Position' });
  const at = async () => Number(await slider.inputValue());
  await slider.focus();
  await page.keyboard.press('Home');
  assert.equal(await at(), 0);
  assert.equal(await page.locator('.row.reached').count(), 1);
  await page.keyboard.press('ArrowRight');
  assert.equal(await at(), 1_000);
  for (const name of ['Pause', 'Play']) {
    await page.keyboard.press(' ');
    await page.getByRole('button', { name, exact: true }).waitFor();
  }
  const drawn = await page.locator('.wave canvas').boundingBox();
  assert.ok(drawn !== null);
  await page.mouse.click(drawn.x + drawn.width / 2, drawn.y + 20);
  const cursor = await page.locator('.cursor').boundingBox();
  assert.ok(cursor !== null && Math.abs(cursor.x - drawn.x - drawn.width / 2) < 3, 'it is there');
  const row = page.locator('.row', { hasText: 'recording-resumed' });
  await row.getByRole('button').first().click();
  await row.getByRole('button', { name: 'Play from here' }).click();
  await page.getByRole('button', { name: 'Pause', exact: true }).click();
  assert.match((await row.getAttribute('class')) ?? '', /\breached\b/);
  await picture(page, 'recording-row');
  say('keys, the waveform and the list move the cursor');
}

async function fitsPhone(page: Page): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width: 390, height: 844 });
    await fits(page);
    await accessible(page, `a recording on a phone, ${colorScheme}`);
  }
  await page.emulateMedia({ colorScheme: null });
  await page.setViewportSize({ width: 1280, height: 900 });
}

const states = [
  [{ state: 'storing', durationMs: 4_000, pausedMs: 0 }, 'Being stored: 4.0 s'],
  [{ state: 'failed', durationMs: 4_000, reason: 'disk-full' }, 'disk is full'],
  [{ state: 'failed', durationMs: 4_000, reason: markup }, markup],
  [{ state: 'stored', durationMs: 4_000, key: 'crm-2026' }, 'encrypted with the key crm-2026'],
  [{ state: 'stored', durationMs: 4_000, key: markup }, markup],
  [
    { state: 'stored', deletedAt: '2026-11-28T12:00:00Z', deletedBy: 'retention' },
    'because its time was over',
  ],
  [{ state: 'stored', deletedAt: '2026-11-28T12:00:00Z', deletedBy: markup }, markup],
] as const;

/** The API's answers are changed on their way to the page. */
async function showStates(stage: Stage, page: Page, callId: string): Promise<void> {
  const path = `**/console/api/public/calls/${callId}`;
  for (const [index, [recording, text]] of states.entries()) {
    await page.route(path, async (route) => {
      const answer = await route.fetch();
      const call = (await answer.json()) as object;
      await route.fulfill({ response: answer, json: { ...call, recording } });
    });
    await openCall(stage, page, callId);
    await page.locator('.recorder').getByText(text).first().waitFor();
    await accessible(page, text);
    await picture(page, `recording-state-${index}`);
    assert.equal(await page.getByRole('slider', { name: 'Position' }).count(), 0);
    await page.unroute(path);
  }
  const found = await page.evaluate(
    "[String(globalThis.stranger), document.querySelectorAll('main img, main script').length]",
  );
  assert.deepEqual(found, ['undefined', 0]);
  say('the page says what became of a recording, without markup in it');
}

/** The player says why it can't play, and plays as soon as it can. */
async function storeAway(stage: Stage, page: Page, callId: string): Promise<void> {
  await openCall(stage, page, callId);
  const path = `**/calls/${callId}/recording`;
  await page.route(path, (route) =>
    route.fulfill({ status: 503, json: { detail: `The store is away. ${markup}` } }),
  );
  await page.getByRole('button', { name: 'Play', exact: true }).click();
  await page.getByRole('alert').getByText(markup).waitFor();
  await accessible(page, 'a recording that cannot be read');
  await picture(page, 'recording-away');
  await page.unroute(path);
  await page.getByRole('button', { name: 'Play', exact: true }).click();
  await page.getByRole('button', { name: 'Pause', exact: true }).click();
  assert.equal(await page.getByRole('alert').count(), 0);
}

/** An app without the scope sees that there is a recording. */
async function mayNotListen(stage: Stage, callId: string): Promise<void> {
  const created = ['apps', 'create', '--name', 'dialer', '--account', 'dev', '--bots', '*'];
  const stdout = await stage.cli(...created, '--scopes', 'Dialout');
  const page = await (await stage.open()).newPage();
  await page.goto(await stage.cli('console', '--app', /app-[\w-]+/.exec(stdout)?.[0] ?? ''));
  await page.getByRole('heading', { name: 'Today', level: 1 }).waitFor();
  await page.goto(`${stage.base}/console#/calls/${callId}`);
  await page.getByText('Only apps with the scope').waitFor();
  assert.equal(await page.getByRole('button', { name: 'Delete…' }).count(), 0);
  await page.context().close();
}

async function remove(stage: Stage, page: Page, callId: string): Promise<void> {
  await openCall(stage, page, callId);
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'Download' }).click(),
  ]);
  assert.equal(download.suggestedFilename(), `${callId}.wav`);
  await page.getByRole('button', { name: 'Delete…' }).click();
  await accessible(page, 'the question before deletion');
  await picture(page, 'recording-delete');
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  await page
    .locator('.recorder')
    .getByText(/^Deleted at .*, by the app app-dev\.$/)
    .waitFor();
  await page.locator('h2:focus', { hasText: 'Recording' }).waitFor();
  await page.mouse.move(1, 1);
  await page.locator('.cursor.idle').waitFor();
  await picture(page, 'recording-deleted');
  say('a recording is downloaded and deleted, and the page says when and by whom');
}
