// npm run test:console: the console in Chromium, as people use it, on a gateway with nothing configured. Says each thing that holds, and
// ends with 1 at the first that does not.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import axe from 'axe-core';
import { type BrowserContext, chromium, type Page } from 'playwright-core';
import { type GatewayProcess, makeDataDir, startGateway } from '../support/gateway-process.ts';
import { RawCallee } from '../support/raw-callee.ts';
import { startReceiver } from '../support/receiver.ts';

const cli = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));
const markup = '<img src=x onerror="window.stranger=1"><script>window.stranger=1</script>';
/** Compressed, all that a browser loads. */
const mostAssetBytes = 100_000;

const dataDir = await makeDataDir();
const receiver = await startReceiver();
const callee = await RawCallee.start();
const gateway = await startGateway(dataDir.path);
const browser = await chromium
  .launch({ executablePath: 'chromium', args: ['--no-sandbox'] })
  .catch(() => chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] }));
const complaints: string[] = [];

try {
  await run(gateway);
  assert.deepEqual(complaints, [], 'nothing was complained of, and no other host was asked');
  say('no console error, no request to another host');
} finally {
  await browser.close();
  await gateway.terminate();
  await receiver.close();
  await callee[Symbol.asyncDispose]();
  await dataDir.remove();
}

async function run({ runtime, dialer }: GatewayProcess): Promise<void> {
  const base = runtime.httpUrl;
  const context = await open();
  const page = await context.newPage();

  await signedOut(page, base);
  await signIn(page, context);

  const voicemail = await dialVoicemail(page);
  await watchVerdict(page);
  await refuseAndReplay(page, voicemail);
  await hangUp(page);
  await strangersText(page, base);
  await otherPages(page, base);
  await otherTenant(base, voicemail);
  await narrow(page, base, voicemail);
  await signOut(page, base);
  assert.equal((await dialer.request('GET', `/api/public/calls/${voicemail}`)).status, 200);
}

async function open(): Promise<BrowserContext> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  context.on('console', (message) => {
    // The page asks who is signed in: that nobody is, Chromium reports as an error.
    const isAnswer = /status of (401|404|403)/.test(message.text());
    if (message.type() === 'error' && !isAnswer) complaints.push(message.text());
  });
  context.on('weberror', (error) => complaints.push(error.error().message));
  context.on('request', (request) => {
    const { host, protocol } = new URL(request.url());
    if (protocol !== 'data:' && host !== new URL(gateway.runtime.httpUrl).host)
      complaints.push(`asked ${request.url()}`);
  });
  return context;
}

async function signedOut(page: Page, base: string): Promise<void> {
  await page.goto(`${base}/console#/calls`);
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  for (const path of ['public/calls', 'receivers', 'operate/nodes']) {
    const answer = await page.request.get(`${base}/console/api/${path}`);
    assert.equal(answer.status(), 401, path);
  }
  await accessible(page, 'signed out');
  say('a page that is signed out shows nothing');
}

async function link(...options: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [cli, 'console', ...options], {
    env: { PATH: process.env['PATH'], DATA_DIR: dataDir.path },
  });
  return stdout.trim();
}

async function signIn(page: Page, context: BrowserContext): Promise<void> {
  const url = await link();
  await page.goto(url);
  await page.getByText('No calls yet.').waitFor();
  assert.ok(!page.url().includes('token='), 'the token is not left in the address');
  const [cookie] = await context.cookies();
  assert.equal(cookie?.httpOnly, true);
  assert.equal(cookie?.sameSite, 'Strict');
  const other = await (await open()).newPage();
  await other.goto(url);
  await other.getByText('The link was used before').waitFor();
  await other.context().close();
  const usableMs = Number(await page.evaluate('performance.now()'));
  await page.reload();
  await page.getByText('No calls yet.').waitFor();
  const [sizes, readyMs] = (await page.evaluate(`[
    performance.getEntriesByType('resource').filter(({ name }) => name.includes('/assets/'))
      .reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0),
    performance.now() - performance.getEntriesByType('navigation')[0].responseStart,
  ]`)) as readonly [number, number];
  assert.ok(sizes > 0 && sizes <= mostAssetBytes, `assets are ${sizes} bytes`);
  say(
    `signed in, once by a link; assets ${sizes} bytes, first byte to usable ${Math.round(readyMs)} ms (at first ${Math.round(usableMs)} ms after the navigation began, sign-in included)`,
  );
}

async function dialVoicemail(page: Page): Promise<string> {
  receiver.answerWith(() => 410);
  return await dial(page, 'tel:+12025550110');
}

async function dial(page: Page, target: string): Promise<string> {
  await page.goto(`${gateway.runtime.httpUrl}/console#/calls`);
  await page.getByRole('button', { name: 'Dial', exact: true }).click();
  await page.getByLabel('Target').fill(target);
  await page.getByLabel('Notify URL').fill(receiver.url);
  await page.getByRole('button', { name: 'Place the call' }).click();
  await page.waitForURL(/#\/calls\/call-/);
  return new URL(page.url()).hash.split('/').pop() ?? '';
}

async function watchVerdict(page: Page): Promise<void> {
  await page.getByText('INVITE + SDP').waitFor();
  await page.locator('.mark', { hasText: 'Machine' }).waitFor({ timeout: 20_000 });
  await page.locator('.mark', { hasText: 'Tone' }).waitFor({ timeout: 20_000 });
  const drawn = await page.locator('.wave canvas').getAttribute('aria-label');
  assert.match(drawn ?? '', /of sound: [\d.]+ s from the far end.*Machine/);
  await page.locator('.status', { hasText: 'Completed' }).waitFor({ timeout: 30_000 });
  await page.getByText('200 OK (BYE)').waitFor();
  await page.locator('.row', { hasText: 'INVITE + SDP' }).getByRole('button').click();
  await page.getByText('CSeq:').waitFor();
  await accessible(page, 'a call');
  say('the verdict and the beep appear on the waveform, SIP in the ladder');
}

async function refuseAndReplay(page: Page, callId: string): Promise<void> {
  await page.locator('.row.notification', { hasText: 'POST Answered' }).getByText('410').waitFor();
  receiver.answerWith(() => 200);
  await page.getByRole('link', { name: 'Notifications' }).click();
  const letters = page.locator('section', { hasText: 'Given up' }).locator('tbody tr');
  await letters.first().waitFor();
  await accessible(page, 'notifications');
  await page.getByRole('button', { name: /Send these \d+ again/ }).click();
  await page.getByText('Nothing was given up.').waitFor();
  await page.goto(`${gateway.runtime.httpUrl}/console#/calls/${callId}`);
  await page.locator('.row.notification.good', { hasText: 'POST completed' }).waitFor();
  await page.locator('.row', { hasText: 'Replay of Answered' }).waitFor();
  say('the receiver refuses, and takes what is sent again');
}

async function hangUp(page: Page): Promise<void> {
  await dial(page, 'tel:+12025550102');
  await page.locator('.status', { hasText: 'Answered' }).waitFor({ timeout: 20_000 });
  await page.getByRole('button', { name: 'Hang up' }).click();
  await page.locator('.status', { hasText: 'Completed' }).waitFor();
  await page.locator('.facts', { hasText: 'Bot-disconnected' }).waitFor();
  say('hung up');
}

/** Whatever somebody else may put into a call: his reason, his headers, his name, our metadata. */
async function strangersText(page: Page, base: string): Promise<void> {
  const { dialer } = gateway;
  const { callId } = await dialer.dial({
    target: `sip:stranger@127.0.0.1:${callee.port}`,
    caller: "+1'-alert(1)-'",
    metadata: { [markup]: markup },
    notifyurl: receiver.url,
  });
  callee.reply(await callee.take('INVITE'), 486, markup, {
    headers: [`Subject: ${markup}`, `P-Asserted-Identity: "${markup}" <sip:x@y>`],
  });
  await page.goto(`${base}/console#/calls/${callId}`);
  await page.locator('.status', { hasText: 'Failed' }).waitFor();
  await page.locator('.facts', { hasText: '<img src=x' }).waitFor();
  await page.locator('.body', { hasText: '<img src=x' }).waitFor();
  for (const row of await page.locator('.row > button').all()) await row.click();
  await page.locator('.row .body', { hasText: 'P-Asserted-Identity' }).waitFor();
  await page.goto(`${base}/console#/calls`);
  await page.locator('tr', { hasText: 'stranger' }).waitFor();
  const found = await page.evaluate(
    "[String(globalThis.stranger), document.querySelectorAll('main img, main script').length]",
  );
  assert.deepEqual(found, ['undefined', 0]);
  say('what strangers write is text');
}

async function otherPages(page: Page, base: string): Promise<void> {
  await accessible(page, 'calls');
  await page.getByLabel('Outcome').selectOption('busy');
  await page.locator('tr', { hasText: 'stranger' }).waitFor();
  assert.equal(await page.locator('tbody tr').count(), 1);
  for (const [name, text] of [
    ['Trunks', 'sandbox'],
    ['Nodes', 'this one'],
    ['Detection', 'dense-speech'],
  ] as const) {
    await page.getByRole('link', { name }).click();
    await page.getByText(text).first().waitFor();
    await accessible(page, name);
  }
  // By keyboard alone: the first stop leads past the navigation.
  await page.goto(`${base}/console#/nodes`);
  await page.getByRole('heading', { name: 'Nodes' }).waitFor();
  await page.evaluate('document.activeElement.blur()');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  assert.equal(await page.evaluate('document.activeElement.id'), 'content');
  say('calls, trunks, nodes, detection; nothing serious for axe');
}

async function otherTenant(base: string, callId: string): Promise<void> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [cli, 'apps', 'create', '--name', markup.slice(0, 40), '--account', 'other', '--bots', '*'],
    { env: { PATH: process.env['PATH'], DATA_DIR: dataDir.path } },
  );
  const appId = /app-[\w-]+/.exec(stdout)?.[0] ?? '';
  const page = await (await open()).newPage();
  await page.goto(await link('--app', appId));
  await page.getByText('No calls yet.').waitFor();
  assert.equal(await page.getByRole('link', { name: 'Trunks' }).count(), 0);
  await page.goto(`${base}/console#/calls/${callId}`);
  await page.getByRole('heading', { name: 'No such call' }).waitFor();
  for (const path of ['operate/trunks', `calls/${callId}/capture`, `calls/${callId}/sip.pcap`]) {
    assert.equal((await page.request.get(`${base}/console/api/${path}`)).status(), 404, path);
  }
  await page.context().close();
  say("another tenant's call is not found, nor are the pages of who operates");
}

async function narrow(page: Page, base: string, callId: string): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width: 390, height: 844 });
    await page.goto(`${base}/console#/calls/${callId}`);
    await page.locator('.timeline').waitFor();
    await fits(page);
    await accessible(page, `a call on a phone, ${colorScheme}`);
  }
  for (const name of ['Calls', 'Notifications', 'Trunks', 'Nodes', 'Detection']) {
    await page.getByRole('link', { name, exact: true }).first().click();
    await page.getByRole('heading', { name, level: 1 }).waitFor();
    await page.locator('main table, main .empty').first().waitFor();
    await fits(page);
  }
  say('fits a phone, dark and light');
}

async function fits(page: Page): Promise<void> {
  const width = Number(await page.evaluate('document.documentElement.scrollWidth'));
  assert.ok(width <= 390, `${page.url()} is ${width} pixels wide on a phone`);
}

async function signOut(page: Page, base: string): Promise<void> {
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  assert.equal((await page.request.get(`${base}/console/api/public/calls`)).status(), 401);
  say('signed out');
}

type AxeResults = {
  readonly violations: readonly {
    readonly id: string;
    readonly impact: string;
    readonly nodes: readonly { readonly html: string }[];
  }[];
};

/** By the DevTools protocol: the page itself takes no script that is not its own. */
async function accessible(page: Page, name: string): Promise<void> {
  await page.evaluate(axe.source);
  const { violations } = (await page.evaluate('axe.run()')) as AxeResults;
  const serious = violations.filter(({ impact }) => ['serious', 'critical'].includes(impact));
  assert.deepEqual(
    serious.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`),
    [],
    `accessibility of ${name}`,
  );
}

function say(what: string): void {
  console.log(`ok  ${what}`);
}
