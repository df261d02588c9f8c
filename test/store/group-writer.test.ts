import { describe, expect, test } from 'vitest';
import { GroupWriter } from '../../src/store/group-writer.ts';

type Item = { readonly key: string; readonly value: number };
const options = { maxBatch: 100, maxWaiting: 1_000, concurrency: 1 };
const item = (key: string, value = 0): Item => ({ key, value });
const refusal = (code: string) => Object.assign(new Error('refused'), { code });

/** Records the values of each statement, and refuses statements that contain a value of `bad`. */
function recordingWriter(bad: ReadonlySet<number> = new Set(), code = '22P02') {
  const statements: string[][] = [];
  const writer = new GroupWriter<Item, string>((items) => {
    statements.push(items.map(({ key, value }) => `${key}${value}`));
    if (items.some(({ value }) => bad.has(value))) return Promise.reject(refusal(code));
    return Promise.resolve(items.map(({ key, value }) => `${key}${value} stored`));
  }, options);
  return { writer, statements };
}

describe('the group writer', () => {
  test('puts items that arrive together into one statement', async () => {
    const { writer, statements } = recordingWriter();

    const results = await Promise.all(['a', 'b', 'c'].map((key) => writer.add(item(key))));

    expect(results).toEqual(['a0 stored', 'b0 stored', 'c0 stored']);
    expect(statements).toEqual([['a0', 'b0', 'c0']]);
  });

  test('never puts two items of one key into a statement, and keeps their order', async () => {
    const { writer, statements } = recordingWriter();

    const results = await Promise.all(
      [item('a', 1), item('b', 1), item('a', 2), item('a', 3), item('b', 2)].map((each) =>
        writer.add(each),
      ),
    );

    expect(results).toEqual(['a1', 'b1', 'a2', 'a3', 'b2'].map((name) => `${name} stored`));
    expect(statements).toEqual([['a1', 'b1'], ['a2', 'b2'], ['a3']]);
  });

  test('lets a refused row fail alone, with the reason', async () => {
    const { writer, statements } = recordingWriter(new Set([13]));
    const items = Array.from({ length: 64 }, (_, index) => item(`k${index}-`, index));

    const results = await Promise.allSettled(items.map((each) => writer.add(each)));

    expect(results.flatMap(({ status }, index) => (status === 'rejected' ? [index] : []))).toEqual([
      13,
    ]);
    expect(results[13]).toMatchObject({ reason: { cause: { code: '22P02' } } });
    expect(statements.length).toBeLessThanOrEqual(13);
  });

  test('writes the later rows of a call whose first was refused', async () => {
    const { writer } = recordingWriter(new Set([1]));

    const results = await Promise.allSettled([
      writer.add(item('a', 1)),
      writer.add(item('a', 2)),
      writer.add(item('b', 3)),
    ]);

    expect(results.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled']);
  });

  test.each(['ECONNRESET', '57P01', '53300', '08006'])(
    'does not retry row by row if the database is in trouble (%s)',
    async (code) => {
      const { writer, statements } = recordingWriter(new Set([0]), code);

      const results = await Promise.allSettled(['a', 'b', 'c'].map((key) => writer.add(item(key))));

      expect(results.map(({ status }) => status)).toEqual(Array(3).fill('rejected'));
      expect(statements).toHaveLength(1);
    },
  );

  test('retries a few times after a deadlock', async () => {
    let failures = 2;
    const writer = new GroupWriter<Item, number>((items) => {
      failures -= 1;
      return failures >= 0
        ? Promise.reject(refusal('40P01'))
        : Promise.resolve(items.map(({ value }) => value));
    }, options);
    expect(await writer.add(item('a', 7))).toBe(7);

    const { writer: hopeless, statements } = recordingWriter(new Set([0]), '40P01');
    await expect(hopeless.add(item('a'))).rejects.toThrow('did not store');
    expect(statements).toHaveLength(4);
  });
});
