// One process among others, tested from the outside.

import { expect, onTestFinished, test } from 'vitest';
import type { Environment } from '../../src/app/environment.ts';
import { openNode } from '../../src/app/nodes.ts';
import type { Storage } from '../../src/app/storage.ts';
import { Closers } from '../../src/lib/closers.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { createNodeStore } from '../../src/store/nodes.ts';
import { createSecretBox } from '../../src/store/secrets.ts';
import { databaseKinds, openTestDatabase } from '../support/databases.ts';

const secrets = createSecretBox(Buffer.alloc(32, 7));

test.each(databaseKinds)(
  'a process that is declared lost while it starts is notified as soon as it listens, on %s',
  async (kind) => {
    const database = await openTestDatabase(kind);
    const closers = new Closers(silentLogger);
    onTestFinished(async () => {
      await closers.closeAll();
      await database.remove();
    });
    const config = { ownerId: 'a/1', nodeId: 'a', leaseMs: 60_000, databaseUrl: 'a cluster' };
    const environment = { config, logger: silentLogger, closers } as unknown as Environment;
    const node = await openNode(environment, { database, secrets } as unknown as Storage);

    await createNodeStore(database, 'b/1', 60_000).expireOthers('everyone');
    await node.lease.renewNow();
    let lost = 0;
    node.onLost(() => {
      lost += 1;
    });

    expect(lost).toBe(1);
  },
);

test('a process that is alone on its database renews seldom, because no other process could take over', async () => {
  const database = await openTestDatabase('pglite');
  const closers = new Closers(silentLogger);
  onTestFinished(async () => {
    await closers.closeAll();
    await database.remove();
  });
  const config = { ownerId: 'a/1', nodeId: 'a', leaseMs: 8_000 };
  const environment = { config, logger: silentLogger, closers } as unknown as Environment;
  await openNode(environment, { database, secrets } as unknown as Storage);

  const { rows } = await database.pool.query(
    "select lease_until - renewed_at > interval '60 seconds' as is_long from nodes",
  );
  expect(rows).toEqual([{ is_long: true }]);
});
