// The stage on which the console is tested: a gateway configured only with a speech-to-text
// provider, Chromium, and the other parties of a call: a receiver, a phone, a bot.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import axe from 'axe-core';
import { type BrowserContext, chromium, type Page } from 'playwright-core';
import { type ScriptedEngine, startEngine } from '../amd-stt/support/scripted-engine.ts';
import { eventually } from '../support/eventually.ts';
import { type GatewayProcess, makeDataDir, startGateway } from '../support/gateway-process.ts';
import { RawCallee } from '../support/raw-callee.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { ScriptedBot } from '../support/streams/scripted-bot.ts';
import { picture } from './pictures.ts';

const cli = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));
/**
 * Long enough for a busy machine, or one that stood still for a while. A wait that ends early costs
 * nothing.
 */
const patienceMs = 60_000;
/** Markup that a stranger might try to inject into the page. */
export const markup = '<img src=x onerror="window.stranger=1"><script>window.stranger=1</script>';

export type Stage = {
  readonly gateway: GatewayProcess;
  readonly base: string;
  readonly receiver: Receiver;
  readonly callee: RawCallee;
  readonly bot: ScriptedBot;
  readonly engine: ScriptedEngine;
  /** Errors that Chromium reported, and requests to other hosts. */
  readonly complaints: readonly string[];
  /**
   * Opens a browser that is not signed in. `bases`: addresses of other gateways than the stage's.
   */
  open(...bases: readonly string[]): Promise<BrowserContext>;
  cli(...args: readonly string[]): Promise<string>;
  /** Returns the text of the open pages, to find out why something did not appear. */
  seen(): Promise<string>;
  close(): Promise<void>;
};

export async function openStage(): Promise<Stage> {
  const dataDir = await makeDataDir();
  const [receiver, callee, bot] = await Promise.all([
    startReceiver(),
    RawCallee.start({ dropsRepetitions: true }),
    ScriptedBot.start(),
  ]);
  const engine = await startEngine({ kind: 'deepgram' });
  const providers = join(dataDir.path, 'stt.yaml');
  await writeFile(providers, `providers:\n  engine:\n    kind: deepgram\n    url: ${engine.url}\n`);
  const [gateway, browser] = await Promise.all([
    startGateway(dataDir.path, { STT_PROVIDERS_FILE: providers }),
    launch(),
  ]);
  const complaints: string[] = [];
  const base = gateway.runtime.httpUrl;
  return {
    ...{ gateway, base, receiver, callee, bot, engine, complaints },
    async open(...bases) {
      const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
      context.setDefaultTimeout(patienceMs);
      watch(context, bases.length === 0 ? [base] : bases, complaints);
      return context;
    },
    async cli(...args) {
      const { stdout } = await promisify(execFile)(process.execPath, [cli, ...args], {
        env: { PATH: process.env['PATH'], DATA_DIR: dataDir.path },
      });
      return stdout.trim();
    },
    async seen() {
      const pages = browser.contexts().flatMap((context) => context.pages());
      const texts = pages.map(async (page) => `${page.url()}\n${await textOf(page)}`);
      return (await Promise.all(texts)).join('\n\n');
    },
    async close() {
      await browser.close();
      await gateway.terminate();
      await receiver.close();
      for (const one of [callee, bot, engine]) await one[Symbol.asyncDispose]();
      await dataDir.remove();
    },
  };
}

/** Shortens a text for an error message. */
async function textOf(page: Page): Promise<string> {
  return ((await page.evaluate('document.body.innerText')) as string).slice(0, 3_000);
}

export async function launch() {
  const args = ['--no-sandbox'];
  return await chromium
    .launch({ executablePath: 'chromium', args })
    .catch(() => chromium.launch({ executablePath: '/usr/bin/chromium', args }));
}

function watch(context: BrowserContext, bases: readonly string[], complaints: string[]): void {
  const hosts = new Set(bases.map((base) => new URL(base).host));
  context.on('console', (message) => {
    // The page asks who is signed in, and Chromium reports the 401 as an error. It also reports
    // requests that the tests let fail or cut off, and the 503s of an outage.
    const isAnswer =
      /status of (400|401|404|403|503)|ERR_INTERNET_DISCONNECTED|ERR_CONTENT_LENGTH_MISMATCH/.test(
        message.text(),
      );
    if (message.type() === 'error' && !isAnswer) complaints.push(message.text());
  });
  context.on('weberror', (error) => complaints.push(error.error().message));
  context.on('request', (request) => {
    const { host, protocol } = new URL(request.url());
    if (!['data:', 'file:'].includes(protocol) && !hosts.has(host))
      complaints.push(`asked ${request.url()}`);
  });
}

/** Opens the page of a call, which then reads the call anew. */
export async function openCall({ base }: Stage, page: Page, callId: string): Promise<void> {
  await page.goto(`${base}/console#/calls`);
  // Otherwise the page might see no change of the address.
  await page.getByRole('heading', { name: 'Calls', level: 1, exact: true }).waitFor();
  await page.goto(`${base}/console#/calls/${callId}`);
}

/** Waits for the sentence that says how the call ended. */
export async function untilEnded(page: Page): Promise<void> {
  await page.locator('.story', { hasText: 'hung up after' }).waitFor();
}

export async function dial({ base, receiver }: Stage, page: Page, target: string): Promise<string> {
  await page.goto(`${base}/console#/calls`);
  await page.getByRole('button', { name: 'Dial', exact: true }).click();
  await page.getByLabel('Target').fill(target);
  await page.getByLabel('Notify URL').fill(receiver.url);
  await picture(page, 'dial-form');
  await page.getByRole('button', { name: 'Place the call' }).click();
  await page.waitForURL(/#\/calls\/call-/);
  return new URL(page.url()).hash.split('/').pop() ?? '';
}

/** Signs in by a link of this gateway, at this address. Returns the link. */
export async function signInBy(
  { dialer, runtime }: GatewayProcess,
  page: Page,
  base: string,
): Promise<string> {
  const { url } = (await dialer.request('POST', '/console/link')).body as { readonly url: string };
  await page.goto(url.replace(runtime.httpUrl, base));
  // The page reads the link from its address a moment after it has loaded.
  await page.locator('.who').waitFor();
  return url;
}

type AxeResults = {
  readonly violations: readonly {
    readonly id: string;
    readonly impact: string;
    readonly nodes: readonly { readonly html: string }[];
  }[];
};

/** Runs a script by the DevTools protocol, because the page itself runs only its own scripts. */
export async function accessible(page: Page, name: string): Promise<void> {
  await page.evaluate(axe.source);
  const { violations } = (await page.evaluate('axe.run()')) as AxeResults;
  assert.deepEqual(
    violations.map(({ id, impact, nodes }) => `${impact} ${id}: ${nodes[0]?.html}`),
    [],
    `accessibility of ${name}`,
  );
}

/** Waits a frame: the page draws again one frame after its width has changed. */
export async function fits(page: Page): Promise<void> {
  const width = async () => Number(await page.evaluate('document.documentElement.scrollWidth'));
  const isNarrow = eventually(async () => (await width()) <= 390, 'it is narrow', patienceMs).then(
    () => true,
    () => false,
  );
  if (await isNarrow) return;
  const widest = await page.evaluate(
    `[...document.querySelectorAll('main *')].filter((one) => one.getBoundingClientRect().right > 391)
      .slice(0, 3).map((one) => one.outerHTML.slice(0, 120)).join(' | ')`,
  );
  assert.fail(`${page.url()} is ${await width()} pixels wide on a phone: ${String(widest)}`);
}

let saidAt = performance.now();

/** Prints a line with the time that the step took. */
export function say(what: string): void {
  const now = performance.now();
  console.log(`ok  ${what} (${((now - saidAt) / 1_000).toFixed(1)} s)`);
  saidAt = now;
}
