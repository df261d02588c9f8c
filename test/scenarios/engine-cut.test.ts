// One of two nodes can no longer reach the SIP engine. The engine keeps running with that node's
// calls.

import { expect, test } from 'vitest';
import { startCluster } from '../support/cluster.ts';
import { openTestDatabase } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { numberFor } from '../support/far-end.ts';
import { isTerminal } from '../support/receiver.ts';
import { layWire } from '../support/wire.ts';

test('the phones of a node that cannot reach the engine are hung up by another node', async () => {
  await using database = await openTestDatabase('postgres');
  await using cluster = await startCluster({ databaseUrl: database.location.databaseUrl ?? '' });
  const engine = new URL(cluster.engine.url);
  const wire = await layWire({ host: '127.0.0.1', port: Number(engine.port) });
  engine.port = String(wire.port);
  try {
    const cutOff = await cluster.startNode('a', { DRACHTIO_URL: engine.href });
    const { callId } = await cutOff.dialer.dial({
      target: `tel:+${numberFor('stay', 0, 1)}`,
      notifyurl: cluster.receiver.url,
    });
    await eventually(() => cluster.farEnd.calls[0]?.acknowledgedAt !== undefined, 'the call is up');
    await cluster.startNode('b');

    wire.cut();

    const bodies = await cluster.receiver.untilEnded(callId);
    expect(bodies.find(isTerminal)).toMatchObject({ status: 'completed' });
    await eventually(() => cluster.farEnd.up === 0, 'the phone is hung up');
  } finally {
    await wire.close();
  }
}, 120_000);
