// `npm run test:console` uses the console in Chromium as people do, on a gateway without
// configuration. It prints each check that passes, and exits with 1 at the first that fails.
// With `-- --tasks` it tries instead what users want to know or do: `tasks/tasks.ts`.

import assert from 'node:assert/strict';
import { parseArgs } from 'node:util';
import type { BrowserContext, Page } from 'playwright-core';
import { eventually } from '../support/eventually.ts';
import { watchStory } from './call-story.ts';
import { setRules } from './calling-rules.ts';
import { dialWithCare } from './dialling.ts';
import { watchDetection, watchFigures } from './figures.ts';
import { findCalls } from './finding-calls.ts';
import { loseConnections } from './lost-connections.ts';
import { watchOutages } from './outages.ts';
import { picture, pictureAway, takePictures } from './pictures.ts';
import { listen } from './recorded-calls.ts';
import { drawRecordings } from './recordings.ts';
import { signInWithCare } from './signing-in.ts';
import { accessible, dial, fits, markup, openStage, say, untilEnded } from './stage.ts';
import { strangersText } from './strangers.ts';
import { tryTasks } from './tasks/tasks.ts';
import { overTwoNodes, startTwoNodes, type TwoNodes } from './two-nodes.ts';

/** Compressed size of all files that a browser loads. */
const mostAssetBytes = 120_000;

const { values } = parseArgs({
  options: {
    pictures: { type: 'string' },
    tasks: { type: 'boolean' },
    only: { type: 'string' },
  },
});
if (values.tasks) process.exit((await tryTasks(values.only, values.pictures)) ? 0 : 1);
await takePictures(values.pictures);
const stage = await openStage();
const { base, gateway, receiver } = stage;
/** Started during the first call, to save time. */
let nodes: Promise<TwoNodes> | undefined;

try {
  await run();
  assert.deepEqual(stage.complaints, [], 'no console error, and no request to another host');
  say('no console error, no request to another host');
} catch (error) {
  console.error(await stage.seen());
  throw error;
} finally {
  await (await nodes?.catch(() => undefined))?.[Symbol.asyncDispose]();
  await stage.close();
}

async function run(): Promise<void> {
  const context = await stage.open();
  const page = await context.newPage();

  await signedOut(page);
  await signIn(page, context);

  const voicemail = await dialVoicemail(page);
  const second = startTwoNodes();
  nodes = second;
  // It is awaited later, which reports its errors.
  second.catch(() => undefined);
  await watchVerdict(page);
  await refuseAndReplay(page, voicemail);
  await refusedForm(page);
  await hangUp(page);
  await watchStory(stage, page);
  await listen(stage, page);
  await drawRecordings(stage);
  await strangersText(stage, page);
  await findCalls(stage, page);
  await otherPages(page);
  await watchDetection(stage, page);
  await otherTenant(voicemail);
  await narrow(page, voicemail);
  await signOut(page);
  await setRules(stage);
  await dialWithCare(stage);
  await signInWithCare(stage);
  await loseConnections(stage);
  await overTwoNodes(stage, await second);
  await watchFigures(stage, await second);
  await watchOutages(stage, await second);
  assert.equal((await gateway.dialer.request('GET', `/api/public/calls/${voicemail}`)).status, 200);
}

async function signedOut(page: Page): Promise<void> {
  await page.goto(`${base}/console#/calls`);
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  for (const path of ['public/calls', 'receivers', 'operate/nodes']) {
    const answer = await page.request.get(`${base}/console/api/${path}`);
    assert.equal(answer.status(), 401, path);
  }
  await accessible(page, 'signed out');
  await picture(page, 'signed-out');
  say('a signed-out page shows no data');
}

async function signIn(page: Page, context: BrowserContext): Promise<void> {
  const url = await stage.cli('console');
  await page.goto(url);
  // A tab that already shows the console stays on its page.
  await page.getByText('No calls yet.').waitFor();
  assert.ok(!page.url().includes('token='), 'the token is not left in the address');
  const [cookie] = await context.cookies();
  assert.equal(cookie?.httpOnly, true);
  assert.equal(cookie?.sameSite, 'Strict');
  const other = await (await stage.open()).newPage();
  await other.goto(url);
  await other.getByText('The link was already used').waitFor();
  await picture(other, 'link-used');
  await other.context().close();
  const usableMs = Number(await page.evaluate('performance.now()'));
  await page.reload();
  await page.getByText('No calls yet.').waitFor();
  const readyMs = Number(
    await page.evaluate(
      "performance.now() - performance.getEntriesByType('navigation')[0].responseStart",
    ),
  );
  const sessionsAsked = Number(
    await page.evaluate(
      `performance.getEntriesByType('resource').filter(({ name }) => name.endsWith('/console/session')).length`,
    ),
  );
  assert.equal(sessionsAsked, 1, 'the early request is the only one');
  await page.getByRole('link', { name: 'Today', exact: true }).click();
  await page.locator('.figure canvas').nth(5).waitFor();
  // With the charts, these are all files.
  const sizes = Number(
    await page.evaluate(
      `performance.getEntriesByType('resource').filter(({ name }) => name.includes('/assets/'))
        .reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0)`,
    ),
  );
  assert.ok(sizes > 0 && sizes <= mostAssetBytes, `assets are ${sizes} bytes`);
  await picture(page, 'today-empty');
  await page.getByRole('link', { name: 'Calls', exact: true }).first().click();
  await page.getByText('No calls yet.').waitFor();
  await picture(page, 'calls-empty');
  say(
    `signed in by a link that works once; assets ${sizes} bytes, first byte to usable ${Math.round(readyMs)} ms (at first ${Math.round(usableMs)} ms after the navigation began, sign-in included)`,
  );
}

async function dialVoicemail(page: Page): Promise<string> {
  receiver.answerWith(() => 410);
  return await dial(stage, page, 'tel:+12025550110');
}

async function watchVerdict(page: Page): Promise<void> {
  await page.getByText('INVITE + SDP').waitFor();
  await picture(page, 'call-begins');
  await page.locator('.mark', { hasText: 'Machine' }).waitFor();
  await page.locator('.mark', { hasText: 'Tone' }).waitFor();
  const drawn = await page.locator('.wave canvas').getAttribute('aria-label');
  assert.match(drawn ?? '', /of sound: [\d.]+ s from the far end.*Machine/);
  await untilEnded(page);
  await page.getByText('200 OK (BYE)').waitFor();
  await drawnAnewWhenDark(page);
  await page.locator('.row', { hasText: 'INVITE + SDP' }).getByRole('button').click();
  await page.getByText('CSeq:').waitFor();
  await picture(page, 'call-voicemail');
  await accessible(page, 'a call');
  say('the verdict and the beep appear on the waveform, SIP in the ladder');
}

/** Switches to dark colours while a page is open on which nothing else changes. */
async function drawnAnewWhenDark(page: Page): Promise<void> {
  const pixels = async () =>
    await page.evaluate("document.querySelector('.wave canvas').toDataURL()");
  const light = await pixels();
  await page.emulateMedia({ colorScheme: 'dark' });
  await eventually(async () => (await pixels()) !== light, 'it is drawn anew', 60_000);
  await page.emulateMedia({ colorScheme: null });
}

async function refuseAndReplay(page: Page, callId: string): Promise<void> {
  const notified = page.locator('.row.notification', { hasText: 'Answered' });
  await notified.filter({ hasText: 'given up: the receiver wants no more' }).waitFor();
  receiver.answerWith(() => 200);
  await page.getByRole('link', { name: 'Notifications' }).click();
  const letters = page.locator('section', { hasText: 'Given up' }).locator('tbody tr');
  await letters.first().waitFor();
  // The notification of the end has the verdict, too, but is named by its status.
  await letters.filter({ hasText: 'completed' }).first().waitFor();
  await accessible(page, 'notifications');
  await picture(page, 'notifications');
  await page.getByRole('button', { name: /Send these \d+ again/ }).click();
  await page.getByText('Nothing was given up.').waitFor();
  await picture(page, 'notifications-empty');
  await page.goto(`${base}/console#/calls/${callId}`);
  await page.locator('.row.notification.good', { hasText: 'Call over' }).waitFor();
  // One row per notification: its attempts and its replay open inside.
  await notified.filter({ hasText: 'when it was sent again, at attempt 2' }).waitFor();
  await notified.getByRole('button').click();
  await notified
    .locator('.parts li', { hasText: 'Attempt 1' })
    .filter({ hasText: '410' })
    .waitFor();
  await notified.locator('.parts li', { hasText: 'sent again by app-dev' }).waitFor();
  await picture(page, 'call-notified-again');
  say('the receiver refuses a notification, and accepts it when it is sent again');
}

/** The wrong field is unfolded and has the focus, also after a second refusal. */
async function refusedForm(page: Page): Promise<void> {
  await page.goto(`${base}/console#/calls`);
  await page.getByRole('button', { name: 'Dial', exact: true }).click();
  await page.getByLabel('Target').fill('+12025550110');
  await page.getByText('Trunk, bot audio, connecting').click();
  await page.getByLabel('Audio to').fill('nowhere');
  await page.getByText('Trunk, bot audio, connecting').click();
  await page.getByLabel('Audio to').waitFor({ state: 'hidden' });
  for (const round of [1, 2]) {
    const answer = page.waitForResponse('**/contactcenter/dialout');
    await page.getByRole('button', { name: 'Place the call' }).click();
    assert.equal((await answer).status(), 400, `round ${round}`);
    await page.getByRole('alert').getByText('The call was not placed.').waitFor();
    await page.locator('input[name="stream.url"][aria-invalid]:focus').waitFor();
  }
  await page.getByLabel('Target').fill('(202) 555-0110');
  await page.getByRole('button', { name: 'Place the call' }).click();
  await page.getByRole('alert').getByText('write +1 202 555 0110').waitFor();
  await page.locator('input[name="target"][aria-invalid]:focus').waitFor();
  await page.getByRole('button', { name: 'Cancel' }).click();
  say('a wrong field of the form is unfolded and has the focus after every refusal');
}

async function hangUp(page: Page): Promise<void> {
  // A number as people write it.
  await dial(stage, page, '+1 (202) 555-0102');
  await page.locator('.story', { hasText: 'answered' }).waitFor();
  await picture(page, 'call-live');
  const talked = page.locator('.facts div', { hasText: 'Talked' }).locator('dd');
  await talked.getByText(/^\d+ s$/).waitFor();
  const before = await talked.textContent();
  await eventually(
    async () => (await talked.textContent()) !== before,
    'the duration of the call increases',
  );
  await page.getByRole('button', { name: 'Hang up' }).click();
  await untilEnded(page);
  await page.locator('.facts', { hasText: 'Bot-disconnected' }).waitFor();
  // The button has disappeared. A user who pressed it by keyboard must not lose the focus.
  await page.locator('h1:focus').waitFor();
  say('hung up');
}

async function otherPages(page: Page): Promise<void> {
  await pictureAway(page, 'calls-away', () =>
    page.locator('[name="result"]').selectOption('machine'),
  );
  for (const [name, text] of [
    ['Servers', 'All is well'],
    ['Trunks', 'sandbox'],
    ['Nodes', 'this node'],
    ['Detection', 'Dense speech'],
  ] as const) {
    await page.getByRole('link', { name }).click();
    await page.getByText(text).first().waitFor();
    await accessible(page, name);
    await picture(page, name.toLowerCase());
  }
  // By keyboard alone: the first link skips the navigation.
  await page.goto(`${base}/console#/nodes`);
  await page.getByRole('heading', { name: 'Nodes' }).waitFor();
  // The heading takes the focus a moment after it appears.
  await page.locator('h1:focus').waitFor();
  await page.evaluate('document.activeElement.blur()');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  assert.equal(await page.evaluate('document.activeElement.id'), 'content');
  say('calls, trunks, nodes, detection; no finding of axe');
}

async function otherTenant(callId: string): Promise<void> {
  const name = markup.slice(0, 40);
  const created = ['apps', 'create', '--name', name, '--account', 'other', '--bots', '*'];
  const stdout = await stage.cli(...created);
  const appId = /app-[\w-]+/.exec(stdout)?.[0] ?? '';
  const page = await (await stage.open()).newPage();
  await page.goto(await stage.cli('console', '--app', appId));
  await page.getByRole('heading', { name: 'Today', level: 1 }).waitFor();
  await page.getByText('No receiver is failing.').waitFor();
  for (const name of ['Servers', 'Trunks'])
    assert.equal(await page.getByRole('link', { name }).count(), 0);
  await page.goto(`${base}/console#/calls/${callId}`);
  await page.getByRole('heading', { name: 'No such call' }).waitFor();
  await picture(page, 'call-not-found');
  for (const path of [
    'operate/servers',
    'operate/trunks',
    `calls/${callId}/capture`,
    `calls/${callId}/sip.pcap`,
  ]) {
    assert.equal((await page.request.get(`${base}/console/api/${path}`)).status(), 404, path);
  }
  await page.context().close();
  say("another tenant's call and the operators' pages are not found");
}

async function narrow(page: Page, callId: string): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width: 390, height: 844 });
    await page.goto(`${base}/console#/calls/${callId}`);
    await page.locator('.timeline').waitFor();
    await fits(page);
    await accessible(page, `a call on a phone, ${colorScheme}`);
  }
  for (const name of [
    'Today',
    'Servers',
    'Calls',
    'Notifications',
    'Trunks',
    'Nodes',
    'Detection',
  ]) {
    await page.getByRole('link', { name, exact: true }).first().click();
    await page.getByRole('heading', { name, level: 1 }).waitFor();
    await page.locator('main table, main .empty, main .figures').first().waitFor();
    await fits(page);
  }
  say('fits a phone, dark and light');
}

async function signOut(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  assert.equal((await page.request.get(`${base}/console/api/public/calls`)).status(), 401);
  say('signed out');
}
