// The user who is signed in changes only if the user wants it. Tests links of other apps, invalid
// links, other tabs, rotated credentials, and the link that a gateway shows in its terminal.

import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { makeDataDir } from '../support/gateway-process.ts';
import { startInTerminal } from '../support/terminal.ts';
import { picture } from './pictures.ts';
import { accessible, type Stage, say, signInBy } from './stage.ts';

const otherName = 'billing';

export async function signInWithCare(stage: Stage): Promise<void> {
  const created = ['apps', 'create', '--name', otherName, '--account', 'acme', '--bots', '*'];
  const other = /app-[\w-]+/.exec(await stage.cli(...created))?.[0] ?? '';
  const context = await stage.open();
  const page = await context.newPage();
  await signInBy(stage.gateway, page, stage.base);
  await expectApp(page, 'dev');
  await linksThatAreNone(stage, page);
  await linkOfAnotherApp(stage, page, other);
  await replacedCredential(stage, page, other);
  await context.close();
  await linkOfTheTerminal(stage);
}

async function linksThatAreNone(stage: Stage, page: Page): Promise<void> {
  const used = await stage.cli('console');
  const stranger = await (await stage.open()).newPage();
  await stranger.goto(used);
  await expectApp(stranger, 'dev');
  await stranger.context().close();
  await page.goto(`${stage.base}/console#/nodes`);
  await page.getByRole('heading', { name: 'Nodes' }).waitFor();
  for (const hash of [used.replace(/.*#/, '#'), '#token=x', '#token=', '#token="><img src=x>']) {
    await page.goto(`${stage.base}/console${hash}`);
    await page.getByRole('alert').getByText('You are still signed in as dev').waitFor();
    assert.ok(page.url().endsWith('/console#/nodes'), page.url());
    await page.getByRole('heading', { name: 'Nodes' }).waitFor();
    await page.getByRole('button', { name: 'Dismiss' }).click();
    await page.getByRole('alert').waitFor({ state: 'detached' });
    // Also in a tab that the link opens.
    const tab = await page.context().newPage();
    await tab.goto(`${stage.base}/console${hash}`);
    await tab.getByRole('alert').getByText('You are still signed in as dev').waitFor();
    await expectApp(tab, 'dev');
    if (hash === '#token=x') {
      await accessible(tab, 'a page with a link that is none');
      await picture(tab, 'link-none');
    }
    await tab.close();
  }
  await expectApp(page, 'dev');
  say('a link that is none signs no user out, and the page stays where it was');
}

async function linkOfAnotherApp(stage: Stage, page: Page, other: string): Promise<void> {
  const link = await stage.cli('console', '--app', other);
  const [before] = await page.context().cookies();
  const tab = await page.context().newPage();
  await tab.goto(link);
  const dialog = tab.getByRole('dialog', { name: 'Sign in as another app?' });
  for (const text of ['app-dev, account dev', `${other}, account acme`])
    await dialog.getByText(text).waitFor();
  await accessible(tab, 'the question whether to change the app');
  await picture(tab, 'link-question');
  await dialog.getByRole('button', { name: 'Stay signed in as dev' }).click();
  await dialog.waitFor({ state: 'detached' });
  await tab.reload();
  await expectApp(tab, 'dev');
  assert.deepEqual((await page.context().cookies())[0]?.value, before?.value);
  say('a link of another app asks, and changes nothing before the answer');

  // In a tab that already shows a page.
  await page.goto(`${stage.base}/console#/nodes`);
  await tab.goto(link);
  await dialog.getByRole('button', { name: `Sign in as ${otherName}` }).click();
  await expectApp(tab, otherName);
  // The other tab is notified, and no longer has the pages about the whole gateway.
  await expectApp(page, otherName);
  await page.getByRole('heading', { name: 'Today', level: 1 }).waitFor();
  const headers = { cookie: `${before?.name}=${before?.value}` };
  const answer = await fetch(`${stage.base}/console/api/public/calls`, { headers });
  assert.equal(answer.status, 401, 'the session that was given up has ended');
  await tab.close();
  say('after the answer every tab shows the other app, and the former session has ended');
}

/** Nobody uses the page. It learns from its event stream that the session has ended. */
async function replacedCredential(stage: Stage, page: Page, other: string): Promise<void> {
  await page.locator('.live.live').waitFor();
  await stage.cli('apps', 'rotate', other, 'jwt', '--grace', '0s');
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  await page.getByRole('alert').getByText('Your session has ended').waitFor();
  await accessible(page, 'a page whose session has ended');
  await picture(page, 'session-ended');
  await page.goto(await stage.cli('console', '--app', other));
  await expectApp(page, otherName);
  assert.equal(await page.getByRole('alert').count(), 0);
  say('a page whose credential was replaced is signed out, and says why');
}

/** Reads the link from the banner, as a user would. */
async function linkOfTheTerminal(stage: Stage): Promise<void> {
  const dataDir = await makeDataDir();
  const terminal = startInTerminal({ DATA_DIR: dataDir.path });
  try {
    await terminal.until('End          Ctrl-C');
    const link = /Console {6}(\S+)/.exec(terminal.screen())?.[1] ?? '';
    const page = await (await stage.open(new URL(link).origin)).newPage();
    await page.goto(link);
    await expectApp(page, 'dev');
    await page.getByRole('heading', { name: 'Today', level: 1 }).waitFor();
    // The link works once. A user who clicks it again stays signed in.
    await page.goto(link);
    await page.getByRole('alert').getByText('You are still signed in as dev').waitFor();
    await page.context().close();
  } finally {
    terminal.interrupt();
    terminal.interrupt();
    await terminal.ended;
    await dataDir.remove();
  }
  say('the link of the banner signs in');
}

async function expectApp(page: Page, name: string): Promise<void> {
  await page.locator('.app', { hasText: name }).waitFor();
}
