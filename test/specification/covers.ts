// Lets a test declare which items of the specification it covers. The author makes the declaration
// and reviewers check it. That's not a proof, because nothing compares the test's assertions with
// the item's wording. A declaration counts once the test has passed in a complete run (see
// spec-report.ts).

import { TestRunner } from 'vitest';
import type { DatabaseKind } from '../support/databases.ts';
import type { SpecId } from './spec-ids.ts';

declare module 'vitest' {
  interface TaskMeta {
    /** The items that the test declares, each with the database that the test ran on. */
    covered?: { readonly id: SpecId; readonly on: DatabaseKind | 'any' }[];
  }
}

type Task = NonNullable<ReturnType<typeof TestRunner.getCurrentTest>>;

/**
 * Declares items for a test that runs once per kind of database:
 * `describe.each(databaseKinds)('… on %s', …)`.
 *
 * @throws Error if none of the titles above the test mentions a database
 */
export function covers(...ids: readonly [SpecId, ...SpecId[]]): void {
  const task = currentTest();
  const kind = kindIn(task);
  if (kind === undefined) {
    throw new Error(
      'no title above this test names its database; use coversOnAny() if it needs none',
    );
  }
  record(task, kind, ids);
}

/**
 * Declares items for a test that doesn't depend on a database, e.g. of pure code, of an API on
 * scripted services or of a call over sockets.
 */
export function coversOnAny(...ids: readonly [SpecId, ...SpecId[]]): void {
  record(currentTest(), 'any', ids);
}

/**
 * Declares items for a concurrent test, which has to pass its own task:
 * `test('…', ({ task }) => …)`.
 */
export function taskCoversOnAny(task: Task, ...ids: readonly [SpecId, ...SpecId[]]): void {
  record(task, 'any', ids);
}

function currentTest(): Task {
  const task = TestRunner.getCurrentTest();
  if (task === undefined) throw new Error('only a test can cover an item');
  if (task.concurrent === true) throw new Error('a concurrent test must use taskCoversOnAny');
  return task;
}

function record(task: Task, on: DatabaseKind | 'any', ids: readonly SpecId[]): void {
  task.meta.covered ??= [];
  task.meta.covered.push(...ids.map((id) => ({ id, on })));
}

function kindIn(task: Task): DatabaseKind | undefined {
  const titles = [task.name];
  for (let suite = task.suite; suite !== undefined; suite = suite.suite) titles.push(suite.name);
  const [, kind] = /\b(postgres|pglite)\b/.exec(titles.join(' ')) ?? [];
  return kind as DatabaseKind | undefined;
}
