// Group commit for SQL: many small writes become one statement. A row that the database refuses fails alone: the others of
// its batch are written without it.

import { Batcher, type BatcherOptions } from '../lib/batcher.ts';
import { isRefusedData, retryConflicts } from './sql-errors.ts';

export type Settled<Result> =
  | { readonly ok: true; readonly value: Result }
  | { readonly ok: false; readonly error: unknown };

type Write<Item, Result> = (items: readonly Item[]) => Promise<readonly Result[]>;

/**
 * `write` is one statement: it stores all of its items or none. No two items with the same key are in one, and those of a
 * key are written in the order in which they were added (with a concurrency of 1).
 */
export class GroupWriter<Item extends { readonly key: string }, Result> {
  readonly #batcher: Batcher<Item, Settled<Result>>;

  constructor(write: Write<Item, Result>, options: BatcherOptions) {
    this.#batcher = new Batcher((items) => writeStatements(items, write), options);
  }

  async add(item: Item): Promise<Result> {
    const settled = await this.#batcher.add(item);
    // The error is shared by all items of a batch: each caller gets one of its own, with its own stack.
    if (!settled.ok) throw new Error('the database did not store it', { cause: settled.error });
    return settled.value;
  }
}

type Entry<Item> = { readonly item: Item; readonly index: number };

/** A statement changes a row once, so a key's second item of a batch goes into the next statement. Mostly there is only one. */
async function writeStatements<Item extends { readonly key: string }, Result>(
  items: readonly Item[],
  write: Write<Item, Result>,
): Promise<readonly Settled<Result>[]> {
  const statements: Entry<Item>[][] = [];
  const seen = new Map<string, number>();
  for (const [index, item] of items.entries()) {
    const number = seen.get(item.key) ?? 0;
    seen.set(item.key, number + 1);
    const statement = statements[number];
    if (statement === undefined) statements.push([{ item, index }]);
    else statement.push({ item, index });
  }
  const settled = new Array<Settled<Result>>(items.length);
  for (const statement of statements) {
    const results = await writeIsolated(
      statement.map((entry) => entry.item),
      write,
    );
    for (const [position, { index }] of statement.entries()) {
      // One result for each item of the statement.
      settled[index] = results[position] as Settled<Result>;
    }
  }
  return settled;
}

export async function writeIsolated<Item, Result>(
  items: readonly Item[],
  write: Write<Item, Result>,
): Promise<readonly Settled<Result>[]> {
  try {
    // Two nodes that write the same rows can meet: the loser of a deadlock tries again.
    const results = await retryConflicts(() => write(items));
    return results.map((value) => ({ ok: true, value }));
  } catch (error) {
    // A database that is unreachable or in trouble is not asked again row by row: that would only make it worse.
    if (items.length === 1 || !isRefusedData(error)) return items.map(() => ({ ok: false, error }));
    // Halving finds one bad row among 200 with about 15 statements.
    const middle = Math.ceil(items.length / 2);
    const first = await writeIsolated(items.slice(0, middle), write);
    return [...first, ...(await writeIsolated(items.slice(middle), write))];
  }
}
