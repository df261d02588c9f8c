// `npm run test:console -- --tasks`: what users of the console want to know or do, as a new user
// would try it. Each task begins on the front page and uses what the user sees. Its answer is
// compared with the API's. Prints for each task the clicks, the fields typed, the keys and the
// seconds, and what failed.

import { isDeepStrictEqual } from 'node:util';
import type { BrowserContext } from 'playwright-core';
import { eventually } from '../../support/eventually.ts';
import { picture, takePictures } from '../pictures.ts';
import { launch, signInBy } from '../stage.ts';
import { openFilled } from './filled.ts';
import { finding } from './finding.ts';
import { oneCall } from './one-call.ts';
import { operating } from './operating.ts';
import type { Task, World } from './task.ts';
import { createUser, type Effort, patienceMs, type User } from './user.ts';

const tasks: readonly Task[] = [...finding, ...oneCall, ...operating];
/** The most clicks for a task. A list that is opened and chosen from counts two. */
const mostClicks = 5;

type Result = Effort & {
  readonly wish: string;
  readonly seconds: number;
  readonly failure: string;
};

/** `only`: a part of the wishes of the tasks to try. Default: all. */
export async function tryTasks(only = '', pictures?: string): Promise<boolean> {
  await takePictures(pictures);
  await using filled = await openFilled();
  const browser = await launch();
  try {
    const context = await browser.newContext({
      ...{ viewport: { width: 1280, height: 900 }, acceptDownloads: true },
      permissions: ['clipboard-read', 'clipboard-write'],
    });
    context.setDefaultTimeout(patienceMs);
    const page = await context.newPage();
    await signInBy(filled.gateway, page, filled.base);
    await page.close();
    const world: World = { ...filled, ask: asker(filled) };
    const results: Result[] = [];
    for (const task of tasks.filter(({ wish }) => wish.includes(only))) {
      const result = await attempt(task, world, context);
      console.log(lineOf(result));
      results.push(result);
    }
    return summarise(results);
  } finally {
    await browser.close();
  }
}

function asker({ gateway }: Pick<World, 'gateway'>): World['ask'] {
  return async <Answer>(path: string) => {
    const { status, body } = await gateway.dialer.request('GET', `/api/public/${path}`);
    if (status !== 200) throw new Error(`${path}: ${status} ${JSON.stringify(body)}`);
    return body as Answer;
  };
}

async function attempt(task: Task, world: World, context: BrowserContext): Promise<Result> {
  const page = await context.newPage();
  const user = createUser(page);
  await page.goto(`${world.base}/console`);
  await page.getByRole('heading', { name: 'Held by rules' }).waitFor();
  const startedAt = performance.now();
  const failure = await answer(task, user, world).catch((error: Error) => firstLine(error.message));
  const seconds = (performance.now() - startedAt) / 1_000;
  if (failure !== '') await picture(page, `failed-${task.wish.replaceAll(/\W+/g, '-')}`);
  await page.close();
  return { wish: task.wish, ...user.effort, seconds, failure };
}

/** @returns what failed, or an empty text */
async function answer(task: Task, user: User, world: World): Promise<string> {
  const got = await task.act?.(user, world);
  let expected: unknown;
  let seen: unknown;
  // The API's answer may change, too: by what the user has done.
  const isSeen = async () => {
    expected = await task.expect(world, user);
    seen = await task.read(user, world, got).catch((error: Error) => firstLine(error.message));
    return isDeepStrictEqual(seen, expected);
  };
  return await eventually(isSeen, 'the answer', patienceMs).then(
    () => '',
    () => `read ${JSON.stringify(seen)}, but the API says ${JSON.stringify(expected)}`,
  );
}

const firstLine = (text: string) => text.split('\n').slice(0, 2).join(' ');

function lineOf({ wish, clicks, fields, keys, seconds, failure }: Result): string {
  const figures = [clicks, fields, keys].map((value) => String(value).padStart(4)).join(' ');
  return `${wish.padEnd(84)} ${figures} ${seconds.toFixed(1).padStart(6)}  ${failure}`;
}

function summarise(results: readonly Result[]): boolean {
  const failed = results.filter(({ failure }) => failure !== '');
  const long = results.filter(({ clicks }) => clicks > mostClicks);
  const clicks = results.map((result) => result.clicks).sort((a, b) => a - b);
  const median = clicks[Math.floor(clicks.length / 2)];
  console.log(
    `\n${results.length} tasks: ${failed.length} failed, ${long.length} need more than ${mostClicks} clicks; median ${median} clicks, at most ${clicks.at(-1)}`,
  );
  return failed.length === 0 && long.length === 0;
}
