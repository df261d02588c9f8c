// The database of a process that may die. A dead process sends no statement any more: what it was
// waiting for may have been committed, but nobody learns of it. A transaction that it left open is
// rolled back, because its connection closes. Answers also get lost while the process lives.

import type { Pool, PoolClient } from 'pg';
import type { Database } from '../../../src/store/database.ts';
import type { Random } from '../random.ts';

export class Life {
  isOver = false;
  lostAnswers = 0;
  readonly #random: Random;
  readonly #lossRate: number;
  readonly #underWay = new Set<Promise<unknown>>();

  constructor(random: Random, lossRate: number) {
    this.#random = random;
    this.#lossRate = lossRate;
  }

  /** Resolves when no statement is under way. */
  async idle(): Promise<void> {
    await Promise.allSettled([...this.#underWay]);
  }

  /** Runs a statement, unless the process is dead. Its answer may get lost. */
  async run<Result>(statement: () => Promise<Result>): Promise<Result> {
    if (this.isOver) throw lost('the process is dead');
    const answer = statement();
    this.#underWay.add(answer);
    const result = await answer.finally(() => this.#underWay.delete(answer));
    if (this.isOver) throw lost('the process died while it waited for its answer');
    if (this.#random.next() >= this.#lossRate) return result;
    this.lostAnswers += 1;
    throw lost('the connection broke before the answer arrived');
  }
}

function lost(message: string): Error {
  return Object.assign(new Error(message), { code: 'ECONNRESET' });
}

export function mortal(database: Database, life: Life): Database {
  const { pool } = database;
  return { ...database, pool: guarded(pool, life), leasePool: guarded(database.leasePool, life) };
}

function guarded(pool: Pool, life: Life): Pool {
  return new Proxy(pool, {
    get(target, name) {
      if (name === 'query')
        return (...args: Parameters<Pool['query']>) => life.run(() => run(target, args));
      if (name === 'connect') {
        return async () => {
          if (life.isOver) throw lost('the process is dead');
          return guardedClient(await target.connect(), life);
        };
      }
      return Reflect.get(target, name, target) as unknown;
    },
  });
}

function guardedClient(client: PoolClient, life: Life): PoolClient {
  return new Proxy(client, {
    get(target, name) {
      if (name === 'query')
        return (...args: Parameters<Pool['query']>) => life.run(() => run(target, args));
      const value = Reflect.get(target, name, target) as unknown;
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

async function run(on: Pool | PoolClient, args: readonly unknown[]): Promise<unknown> {
  return await (on.query as (...given: readonly unknown[]) => Promise<unknown>)(...args);
}
