// A disk that is really full. Mounting a small one needs root.

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { SpoolHeader } from '../../../src/recording/thread/spool-header.ts';
import { SpoolWriter } from '../../../src/recording/thread/spool-writer.ts';
import { mountSmallDisk } from '../../faults/servers/small-disk.ts';

test('a recording that can’t begin on a full disk leaves nothing behind', async (context) => {
  const disk = await mountSmallDisk();
  if (disk === undefined) return context.skip();
  await disk.fill();
  const header: SpoolHeader = {
    ...{ callId: 'call-1', accountId: 'a', botId: 'b', ownerId: 'node-1/x' },
    ...{ startedAt: 0, from: 'answer' },
    version: 1,
    fill: 'silence',
  };
  const begin = (): SpoolWriter =>
    new SpoolWriter(join(disk.folder, 'owner', 'call-1'), header, undefined);
  expect(begin).toThrow(/ENOSPC/);
  await disk.empty();
  expect(readdirSync(disk.folder)).toEqual([]);
  begin().close();
  await disk.remove();
});
