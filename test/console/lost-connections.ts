// The page when its gateway falls silent: it reconnects if the connection for live events died
// unnoticed, and it does not treat a sign-out as done if the request did not arrive.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { BrowserContext, Page } from 'playwright-core';
import { eventually } from '../support/eventually.ts';
import { type Stage, say, signInBy } from './stage.ts';

export async function loseConnections(stage: Stage): Promise<void> {
  await using network = await startNetwork(stage.base);
  const context = await stage.open(network.url);
  const page = await context.newPage();
  await deadConnection(stage, page, network);
  await answerThatIsLost(stage, page);
  await answerThatIsTorn(stage, page, network);
  await answerAfterCancel(stage, page);
  await gatewayThatIsAway(context, page);
  await signOutThatIsLost(context, page);
  await context.close();
}

/**
 * The gateway sends something at least every 15 s. After 45 s of silence the page gives up the
 * connection.
 */
async function deadConnection(stage: Stage, page: Page, network: Network): Promise<void> {
  // Replaces the page's timers, so that the test need not wait for them.
  await page.clock.install();
  await signInBy(stage.gateway, page, network.url);
  await page.getByRole('link', { name: 'Calls' }).click();
  const live = page.locator('.live');
  await live.getByText('Live').waitFor();
  const before = network.asked.lastIndexOf('events');
  network.fallSilent();
  // The page does not notice it.
  const { callId } = await stage.gateway.dialer.dial({ target: 'tel:+12025550134' });
  await page.clock.fastForward(60_000);
  const again = () => network.asked.lastIndexOf('events');
  await eventually(() => again() > before, 'the page connects anew', 60_000);
  await eventually(() => network.asked.indexOf('calls', again()) > 0, 'and reads anew', 60_000);
  await live.getByText('Live').waitFor();
  await page.locator(`a[href="#/calls/${callId}"]`).first().waitFor();
  say('a connection that died unnoticed is made anew, and what happened meanwhile is seen');
}

/**
 * The page does not know whether the call was placed. The call was placed, and is not placed again.
 */
async function answerThatIsLost({ gateway }: Stage, page: Page): Promise<void> {
  const dialout = '**/contactcenter/dialout';
  const target = '+12025550133';
  // Other steps call the same numbers.
  const before = await placedTo(gateway, target);
  await page.route(dialout, async (route) => {
    await route.fetch();
    await route.abort('internetdisconnected');
  });
  await place(page, target);
  await page.getByRole('alert').getByText('no phone is called twice').waitFor();
  await page.unroute(dialout);
  await page.getByRole('button', { name: 'Place the call' }).click();
  await page.waitForURL(/#\/calls\/call-/);
  assert.equal(await placedTo(gateway, target), before + 1);
  say('a call whose answer was lost is placed once, however often one tries');
}

/**
 * The beginning of the answer reports success, and the rest is lost. A user who gives up, dials
 * another phone and returns calls no phone twice.
 */
async function answerThatIsTorn({ gateway }: Stage, page: Page, network: Network): Promise<void> {
  const [target, other] = ['+12025550135', '+12025550136'] as const;
  const before = {
    [target]: await placedTo(gateway, target),
    [other]: await placedTo(gateway, other),
  };
  await page.goto(`${network.url}/console#/calls`);
  network.tearDialout();
  await place(page, target);
  await page.getByRole('alert').getByText('no phone is called twice').waitFor();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  for (const next of [other, target]) {
    await page.goto(`${network.url}/console#/calls`);
    await place(page, next);
    await page.waitForURL(/#\/calls\/call-/);
    assert.equal(await placedTo(gateway, next), (before[next] ?? 0) + 1);
  }
  say('so is one of whose answer only the beginning came, also when the form was closed meanwhile');
}

/** When the answer arrives, another form is open. */
async function answerAfterCancel({ gateway }: Stage, page: Page): Promise<void> {
  const dialout = '**/contactcenter/dialout';
  const target = '+12025550137';
  const late = new AbortController();
  const isAnswered = page.waitForResponse(dialout);
  await page.route(dialout, async (route) => {
    const response = await route.fetch();
    await once(late.signal, 'abort');
    await route.fulfill({ response });
  });
  await page.goto(`${page.url().split('#')[0]}#/calls`);
  await place(page, target);
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Dial', exact: true }).click();
  await page.getByLabel('Target').fill('+12025550138');
  await eventually(async () => (await placedTo(gateway, target)) === 1, 'the call is placed');
  late.abort();
  await (await isAnswered).finished();
  // If the answer had an effect, it would be visible before the next picture.
  await page.evaluate('new Promise((resolve) => requestAnimationFrame(resolve))');
  assert.equal(await page.getByLabel('Target').inputValue(), '+12025550138');
  assert.ok(page.url().endsWith('#/calls'), page.url());
  await page.unroute(dialout);
  await page.getByRole('button', { name: 'Cancel' }).click();
  say('an answer that comes after Cancel leaves the next form alone');
}

async function gatewayThatIsAway(context: BrowserContext, page: Page): Promise<void> {
  const session = '**/console/session';
  await context.route(session, (route) => route.abort('internetdisconnected'));
  await page.reload();
  await page.getByRole('alert').getByText('The page tries again.').waitFor();
  await context.unroute(session);
  await page.getByRole('button', { name: 'Sign out' }).waitFor();
  say('a page that was opened while the gateway was away is there when it is back');
}

async function place(page: Page, target: string): Promise<void> {
  await page.getByRole('button', { name: 'Dial', exact: true }).click();
  await page.getByLabel('Target').fill(target);
  await page.getByRole('button', { name: 'Place the call' }).click();
}

async function placedTo({ dialer }: Stage['gateway'], target: string): Promise<number> {
  const { body } = await dialer.request('GET', '/api/public/calls?limit=200');
  const { calls } = body as { readonly calls: readonly { readonly target: string }[] };
  return calls.filter((call) => call.target === `tel:${target}`).length;
}

async function signOutThatIsLost(context: BrowserContext, page: Page): Promise<void> {
  const session = '**/console/session';
  await context.route(session, (route) =>
    route.request().method() === 'DELETE' ? route.abort('internetdisconnected') : route.continue(),
  );
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('alert').getByText('You may still be signed in').waitFor();
  await context.unroute(session);
  await page.reload();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  await page.reload();
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  say('a sign-out that was not taken says so');
}

type Network = AsyncDisposable & {
  readonly url: string;
  /** The requests of a page for live events and lists, in order. */
  readonly asked: readonly string[];
  /** Keeps connections for live events open, but passes nothing through the existing ones. */
  fallSilent(): void;
  /** Passes only the status and headers of the next answer to a dial request. */
  tearDialout(): void;
};

/** A proxy in front of the gateway. */
async function startNetwork(base: string): Promise<Network> {
  const { hostname, port } = new URL(base);
  const sockets = new Set<Socket>();
  const asked: string[] = [];
  const streams: Socket[] = [];
  let tearsDialout = false;
  const server = createServer((browser) => {
    const gateway = connect(Number(port), hostname);
    for (const [socket, other] of [
      [browser, gateway],
      [gateway, browser],
    ] as const) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
    browser.on('data', (bytes: Buffer) => {
      const text = bytes.toString('latin1');
      const what = /^GET \/console\/api\/public\/(\w+)/.exec(text)?.[1];
      if (what !== undefined) asked.push(what);
      if (what === 'events') streams.push(gateway);
      if (tearsDialout && /^POST .*\/dialout /.test(text)) {
        tearsDialout = false;
        tear(gateway, browser);
      }
    });
    browser.pipe(gateway);
    gateway.pipe(browser);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    tearDialout: () => {
      tearsDialout = true;
    },
    fallSilent: () => {
      for (const stream of streams) stream.unpipe();
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

function tear(gateway: Socket, browser: Socket): void {
  gateway.unpipe(browser);
  let text = '';
  gateway.on('data', (bytes: Buffer) => {
    text += bytes.toString('latin1');
    const length = text.indexOf('\r\n\r\n') + 4;
    if (length > 3 && !browser.writableEnded) browser.end(text.slice(0, length), 'latin1');
  });
  gateway.resume();
}
