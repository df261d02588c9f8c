// A recording that can't begin because its disk is full. `ulimit -f 0` has the same effect as a
// disk without space.

import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { forEachTest } from '../../support/opened.ts';

const writer = fileURLToPath(new URL('../support/unwritable-process.ts', import.meta.url));
const run = promisify(execFile);

const spool = forEachTest(() => {
  const folder = mkdtempSync(join(tmpdir(), 'offhook-spool-'));
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
});

test('a recording that can’t begin on a full disk leaves nothing behind', async () => {
  const node = [process.execPath, '--import', 'tsx', writer, join(spool.folder, 'owner/call-1')];

  const { stdout } = await run('sh', ['-c', 'ulimit -f 0 && exec "$@"', 'sh', ...node]);

  expect(stdout).toBe('EFBIG');
  expect(readdirSync(spool.folder)).toEqual([]);
});
