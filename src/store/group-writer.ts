// Implements group commit by combining many small writes into one statement. If the database
// rejects a row, only that row fails, and the rest of the batch is written without it.

import { Batcher, type BatcherOptions } from '../lib/batcher.ts';
import { isRefusedData, retryConflicts } from './sql-errors.ts';

export type Settled<Result> =
  | { readonly ok: true; readonly value: Result }
  | { readonly ok: false; readonly error: unknown };

type Write<Item, Result> = (items: readonly Item[]) => Promise<readonly Result[]>;

/**
 * Groups items into calls to `write`, which must run one statement that stores either all of its
 * items or none. A statement never contains two items with the same key. If the concurrency is 1,
 * items with the same key are written in the order in which they were added.
 */
export class GroupWriter<Item extends { readonly key: string }, Result> {
  readonly #batcher: Batcher<Item, Settled<Result>>;

  constructor(write: Write<Item, Result>, options: BatcherOptions) {
    this.#batcher = new Batcher((items) => writeStatements(items, write), options);
  }

  async add(item: Item): Promise<Result> {
    const settled = await this.#batcher.add(item);
    // All items of a batch fail with the same error, so we wrap it to give each caller its own
    // stack trace.
    if (!settled.ok) throw new Error('the database did not store it', { cause: settled.error });
    return settled.value;
  }
}

type Entry<Item> = { readonly item: Item; readonly index: number };

/**
 * Writes a batch. A statement can only change a row once, so the second item with the same key goes
 * into the next statement. Most batches need only one statement.
 */
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
      // `write` returns one result for each item of the statement.
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
    // Two nodes that write the same rows can deadlock, in which case the loser tries again.
    const results = await retryConflicts(() => write(items));
    return results.map((value) => ({ ok: true, value }));
  } catch (error) {
    // If the database is unreachable or in trouble, trying row by row would only make things worse.
    if (items.length === 1 || !isRefusedData(error)) return items.map(() => ({ ok: false, error }));
    // Halving finds one bad row among 200 with about 15 statements.
    const middle = Math.ceil(items.length / 2);
    const first = await writeIsolated(items.slice(0, middle), write);
    return [...first, ...(await writeIsolated(items.slice(middle), write))];
  }
}
