// Two gateways on one PostgreSQL and one NATS. A call of one node is seen and ended through the
// other, and a user who is signed in at one is signed in at both.

import assert from 'node:assert/strict';
import type { BrowserContext, Page } from 'playwright-core';
import { type Part, startCluster } from '../support/cluster.ts';
import { eventually } from '../support/eventually.ts';
import type { GatewayProcess } from '../support/gateway-process.ts';
import { startPostgres } from '../support/postgres-server.ts';
import { type Stage, say, signInBy, untilEnded } from './stage.ts';

const target = 'tel:+12025550102';

export type TwoNodes = AsyncDisposable & {
  readonly here: GatewayProcess;
  readonly there: GatewayProcess;
  readonly engine: Part;
  readonly databaseUrl: string;
  stopDatabase(): Promise<void>;
};

export async function startTwoNodes(): Promise<TwoNodes> {
  const postgres = await startPostgres();
  const cluster = await startCluster({
    databaseUrl: postgres.url,
    // A node that stands still for a while must not be taken for lost.
    variables: { NODE_LEASE_MS: '24000' },
  }).catch(async (error) => {
    await postgres.stop();
    throw error;
  });
  const dispose = async (): Promise<void> => {
    await cluster[Symbol.asyncDispose]();
    await postgres.stop();
  };
  try {
    const here = await cluster.startNode('here');
    // Only this node knows the carrier of the call.
    const there = await cluster.startNode('there', { SANDBOX: 'on' });
    const { engine } = cluster;
    const stopDatabase = () => postgres.stop();
    return {
      here,
      there,
      engine,
      databaseUrl: postgres.url,
      stopDatabase,
      [Symbol.asyncDispose]: dispose,
    };
  } catch (error) {
    await dispose();
    throw error;
  }
}

export async function overTwoNodes(stage: Stage, { here, there }: TwoNodes): Promise<void> {
  const context = await stage.open(baseOf(here), baseOf(there));
  const page = await signIn(stage, context, here, there);
  try {
    await watchCallOf(there, page, here);
  } catch (error) {
    console.error(there.output());
    throw error;
  }
  await signOutEverywhere(context, page, there);
  await context.close();
}

const baseOf = ({ runtime }: GatewayProcess): string => runtime.httpUrl;

async function signIn(
  stage: Stage,
  context: BrowserContext,
  here: GatewayProcess,
  there: GatewayProcess,
): Promise<Page> {
  const page = await context.newPage();
  const link = await signInBy(there, page, baseOf(here));
  await page.getByRole('heading', { name: 'Today', level: 1 }).waitFor();
  await page.getByRole('link', { name: 'Calls' }).first().click();
  await page.getByText('No calls yet.').waitFor();
  const stranger = await (await stage.open(baseOf(there))).newPage();
  await stranger.goto(link);
  await stranger.getByText('The link was already used').waitFor();
  await stranger.context().close();
  say('a link of one node signs in at the other, and then nowhere');
  return page;
}

async function watchCallOf(there: GatewayProcess, page: Page, here: GatewayProcess): Promise<void> {
  const { callId } = await there.dialer.dial({
    ...{ target, trunk: 'sandbox', machineDetection: 'detect' },
  });
  const row = page.locator('.calls tbody tr', { hasText: '+1 202 555 0102' });
  await row.getByText('Person', { exact: true }).waitFor();
  await page.goto(`${baseOf(here)}/console#/calls/${callId}`);
  await page.getByText('200 OK (INVITE) + SDP').waitFor();
  await page.locator('.mark', { hasText: 'Person' }).waitFor();
  const first = await soundOf(page);
  await eventually(async () => (await soundOf(page)) > first, 'the sound goes on', 60_000);
  say('a call of the other node is live: in the list, its ladder, its sound');
  // A node reports its number of calls when it renews its lease.
  await page.getByRole('link', { name: 'Nodes' }).click();
  const node = page.locator('tbody tr', { hasText: 'there' });
  await node.locator('[data-name="Calls"]', { hasText: /^1$/ }).waitFor();
  await page.goto(`${baseOf(here)}/console#/calls/${callId}`);
  await page.getByRole('button', { name: 'Hang up' }).click();
  await untilEnded(page);
  await page.locator('.facts', { hasText: 'Bot-disconnected' }).waitFor();
  await page.getByText('200 OK (BYE)').waitFor();
  say('and is hung up');
}

/** Returns the seconds of the waveform. The person in the call says a word and waits. */
async function soundOf(page: Page): Promise<number> {
  const label = await page.locator('.wave canvas').getAttribute('aria-label');
  return Number(/^([\d.]+) s of sound/.exec(label ?? '')?.[1] ?? 0);
}

async function signOutEverywhere(
  context: BrowserContext,
  page: Page,
  there: GatewayProcess,
): Promise<void> {
  // Both nodes have the same host, as behind a proxy, and so the same cookie.
  const other = await context.newPage();
  await other.goto(`${baseOf(there)}/console#/nodes`);
  await other.locator('tr', { hasText: 'this node' }).getByText('there').waitFor();
  const [cookie] = await context.cookies();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  await other.getByRole('heading', { name: 'Sign in' }).waitFor();
  const headers = { cookie: `${cookie?.name}=${cookie?.value}` };
  const answer = await fetch(`${baseOf(there)}/console/api/public/calls`, { headers });
  assert.equal(answer.status, 401, 'the cookie is of no use to one who kept it');
  say('signed out at both');
}
