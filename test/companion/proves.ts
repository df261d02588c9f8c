// Records which items of the specification a test proves. A proof counts once the test has passed
// in a complete run.

import { TestRunner } from 'vitest';
import type { DatabaseKind } from '../support/databases.ts';
import type { SpecId } from './spec-ids.ts';

declare module 'vitest' {
  interface TaskMeta {
    proven?: { readonly id: SpecId; readonly on: DatabaseKind | 'any' }[];
  }
}

type Task = NonNullable<ReturnType<typeof TestRunner.getCurrentTest>>;

/**
 * For a test that runs once on each kind of database: `describe.each(databaseKinds)('… on %s', …)`.
 */
export function proves(...ids: readonly [SpecId, ...SpecId[]]): void {
  const task = currentTest();
  const kind = kindIn(task);
  if (kind === undefined) {
    throw new Error(
      'no title above this test names its database; use provesOnAny() if it needs none',
    );
  }
  record(task, kind, ids);
}

/**
 * For a test that does not depend on a database: pure code, an API on scripted services, a call
 * over sockets.
 */
export function provesOnAny(...ids: readonly [SpecId, ...SpecId[]]): void {
  record(currentTest(), 'any', ids);
}

/** For concurrent tests, which must pass their own task: `test('…', ({ task }) => …)`. */
export function taskProvesOnAny(task: Task, ...ids: readonly [SpecId, ...SpecId[]]): void {
  record(task, 'any', ids);
}

function currentTest(): Task {
  const task = TestRunner.getCurrentTest();
  if (task === undefined) throw new Error('only a test can prove an item');
  if (task.concurrent === true) throw new Error('a concurrent test must use taskProvesOnAny');
  return task;
}

function record(task: Task, on: DatabaseKind | 'any', ids: readonly SpecId[]): void {
  task.meta.proven ??= [];
  task.meta.proven.push(...ids.map((id) => ({ id, on })));
}

function kindIn(task: Task): DatabaseKind | undefined {
  const titles = [task.name];
  for (let suite = task.suite; suite !== undefined; suite = suite.suite) titles.push(suite.name);
  const [, kind] = /\b(postgres|pglite)\b/.exec(titles.join(' ')) ?? [];
  return kind as DatabaseKind | undefined;
}
