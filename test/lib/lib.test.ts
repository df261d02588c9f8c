import { describe, expect, test } from 'vitest';
import { Batcher } from '../../src/lib/batcher.ts';

const options = { maxBatch: 3, maxWaiting: 10, concurrency: 1 };

describe('group commit', () => {
  test('puts items of one turn into a batch of bounded size, with results in order', async () => {
    const batches: number[][] = [];
    const batcher = new Batcher<number, number>(async (items) => {
      batches.push([...items]);
      return items.map((item) => item * 10);
    }, options);

    const results = await Promise.all([1, 2, 3, 4].map((item) => batcher.add(item)));

    expect(results).toEqual([10, 20, 30, 40]);
    expect(batches).toEqual([[1, 2, 3], [4]]);
  });

  test('includes items that come a few promises later if batches take whole turns', async () => {
    const batchesOf = async (wholeTurns: boolean): Promise<number[][]> => {
      const batches: number[][] = [];
      const batcher = new Batcher<number, number>(
        async (items) => {
          batches.push([...items]);
          return items;
        },
        { ...options, wholeTurns },
      );
      const later = async (): Promise<number> => {
        for (let count = 0; count < 10; count += 1) await Promise.resolve();
        return await batcher.add(2);
      };
      await Promise.all([batcher.add(1), later()]);
      return batches;
    };

    expect(await batchesOf(false)).toEqual([[1], [2]]);
    expect(await batchesOf(true)).toEqual([[1, 2]]);
  });

  test('puts items that arrive during a write into the next batch', async () => {
    const batches: number[][] = [];
    let release = () => {};
    const batcher = new Batcher<number, number>(async (items) => {
      batches.push([...items]);
      if (batches.length === 1)
        await new Promise<void>((resolve) => {
          release = resolve;
        });
      return items;
    }, options);

    const first = batcher.add(1);
    await Promise.resolve();
    const others = [batcher.add(2), batcher.add(3)];
    await Promise.resolve();
    release();
    await Promise.all([first, ...others]);

    expect(batches).toEqual([[1], [2, 3]]);
  });

  test('rejects only the items of a failed batch', async () => {
    const batcher = new Batcher<number, number>(
      async (items) => {
        if (items.includes(1)) throw new Error('refused');
        return items;
      },
      { ...options, maxBatch: 1 },
    );

    await expect(Promise.allSettled([batcher.add(1), batcher.add(2)])).resolves.toMatchObject([
      { status: 'rejected' },
      { status: 'fulfilled', value: 2 },
    ]);
  });

  test('rejects an item beyond the limit', async () => {
    const batcher = new Batcher<number, number>(() => new Promise(() => {}), {
      ...options,
      maxWaiting: 2,
    });
    void batcher.add(1);
    void batcher.add(2);

    await expect(batcher.add(3)).rejects.toThrow('batch queue is full (2 waiting)');
  });
});
