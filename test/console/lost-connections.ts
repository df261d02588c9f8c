// What a page does when its gateway falls silent: a connection for live events that died unnoticed is made anew, and a sign-out that did not
// arrive is not taken for one.

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
  await signOutThatIsLost(context, page);
  await context.close();
}

/** The gateway says something every 15 s at least; after 45 s of nothing the page does not believe in the connection any more. */
async function deadConnection(stage: Stage, page: Page, network: Network): Promise<void> {
  // Its timers, which a test does not wait for.
  await page.clock.install();
  await signInBy(stage.gateway, page, network.url);
  const live = page.locator('.live');
  await live.getByText('Live').waitFor();
  const before = network.asked.lastIndexOf('events');
  network.fallSilent();
  // Nobody tells the page of it.
  const { callId } = await stage.gateway.dialer.dial({ target: 'tel:+12025550134' });
  await page.clock.fastForward(60_000);
  const again = () => network.asked.lastIndexOf('events');
  await eventually(() => again() > before, 'the page connects anew', 60_000);
  await eventually(() => network.asked.indexOf('calls', again()) > 0, 'and reads anew', 60_000);
  await live.getByText('Live').waitFor();
  await page.locator(`a[href="#/calls/${callId}"]`).first().waitFor();
  say('a connection that died unnoticed is made anew, and what happened meanwhile is seen');
}

/** Nobody knows whether the call was placed; it is, and is not placed again. */
async function answerThatIsLost({ gateway }: Stage, page: Page): Promise<void> {
  const dialout = '**/contactcenter/dialout';
  const target = '+12025550133';
  await page.route(dialout, async (route) => {
    await route.fetch();
    await route.abort('internetdisconnected');
  });
  await page.getByRole('button', { name: 'Dial', exact: true }).click();
  await page.getByLabel('Target').fill(target);
  await page.getByRole('button', { name: 'Place the call' }).click();
  await page.getByRole('alert').getByText('nobody is called twice').waitFor();
  await page.unroute(dialout);
  await page.getByRole('button', { name: 'Place the call' }).click();
  await page.waitForURL(/#\/calls\/call-/);
  const { body } = await gateway.dialer.request('GET', '/api/public/calls?limit=200');
  const { calls } = body as { readonly calls: readonly { readonly target: string }[] };
  assert.equal(calls.filter((call) => call.target === `tel:${target}`).length, 1);
  say('a call whose answer was lost is placed once, however often one tries');
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
  /** What a page asked for: live events and lists, in order. */
  readonly asked: readonly string[];
  /** Connections for live events stay up, and nothing comes through those that are. */
  fallSilent(): void;
};

/** In front of the gateway. */
async function startNetwork(base: string): Promise<Network> {
  const { hostname, port } = new URL(base);
  const sockets = new Set<Socket>();
  const asked: string[] = [];
  const streams: Socket[] = [];
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
      const what = /^GET \/console\/api\/public\/(\w+)/.exec(bytes.toString('latin1'))?.[1];
      if (what !== undefined) asked.push(what);
      if (what === 'events') streams.push(gateway);
    });
    browser.pipe(gateway);
    gateway.pipe(browser);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
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
