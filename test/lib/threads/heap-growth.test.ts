import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const run = promisify(execFile);
const module = new URL('../../../src/lib/threads/heap-growth.ts', import.meta.url).href;

/** Makes objects of which many survive, as in a start, and prints the young generation's size. */
const program = `
  import { getHeapSpaceStatistics } from 'node:v8';
  import { holdYoungGeneration } from ${JSON.stringify(module)};
  const spaceBytes = () =>
    getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space').space_size;
  const afterWork = () => {
    const kept = [];
    for (let index = 0; index < 400_000; index += 1) {
      kept.push({ index, list: [index] });
      if (kept.length > 20_000) kept.splice(0, 10_000);
    }
    return spaceBytes();
  };
  const release = holdYoungGeneration();
  const before = spaceBytes();
  const held = afterWork();
  release();
  console.log(JSON.stringify({ before, held, released: afterWork() }));
`;

test('the young generation stays small during the start, and can grow afterwards', async () => {
  // A process of its own, because the setting applies to all its threads.
  const options = ['--import', 'tsx', '--input-type=module', '--eval', program];
  const { stdout } = await run(process.execPath, options);
  const { before, held, released } = JSON.parse(stdout) as Record<string, number>;

  expect(held).toBe(before);
  expect(released).toBeGreaterThan(before ?? Number.NaN);
});
