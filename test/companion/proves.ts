// Says inside a test which items of the specification it proves. It counts once the test passed, in a whole run.

import { TestRunner } from 'vitest';
import type { DatabaseKind } from '../support/databases.ts';
import type { SpecId } from './spec-ids.ts';

declare module 'vitest' {
  interface TaskMeta {
    proven?: { readonly id: SpecId; readonly on: DatabaseKind | 'any' }[];
  }
}

type Task = NonNullable<ReturnType<typeof TestRunner.getCurrentTest>>;

/** In a test that runs once on each kind of database: `describe.each(databaseKinds)('… on %s', …)`. */
export function proves(...ids: readonly [SpecId, ...SpecId[]]): void {
  const task = currentTest();
  const kind = kindIn(task);
  if (kind === undefined) {
    throw new Error('no title above this test names its database; provesOnAny() where it has none');
  }
  record(task, kind, ids);
}

/** In a test whose outcome no database has a say in: pure code, an API on scripted services, a call on the wire. */
export function provesOnAny(...ids: readonly [SpecId, ...SpecId[]]): void {
  record(currentTest(), 'any', ids);
}

/** The same in concurrent tests, which have to say which of them they are: `test('…', ({ task }) => …)`. */
export function taskProvesOnAny(task: Task, ...ids: readonly [SpecId, ...SpecId[]]): void {
  record(task, 'any', ids);
}

function currentTest(): Task {
  const task = TestRunner.getCurrentTest();
  if (task === undefined) throw new Error('only a test proves something');
  if (task.concurrent === true)
    throw new Error('a concurrent test says which it is: taskProvesOnAny');
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
