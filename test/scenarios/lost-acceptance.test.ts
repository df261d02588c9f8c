// The database stores a request, but its answer is lost. The gateway reports that the outcome is
// unknown, because the phone will ring.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { openTestDatabase } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { numberFor } from '../support/far-end.ts';
import type { GatewayProcess } from '../support/gateway-process.ts';
import { forSuite } from '../support/opened.ts';
import { layDatabaseWire, through, type Wire } from '../support/wire.ts';

describe('a request that is stored although the answer of the database is lost', () => {
  let cluster: Cluster;
  let gateway: GatewayProcess;
  let wire: Wire;
  const database = forSuite(() => openTestDatabase('postgres'));
  beforeAll(async () => {
    const databaseUrl = database.location.databaseUrl ?? '';
    cluster = await startCluster({ databaseUrl });
    wire = await layDatabaseWire(databaseUrl);
    gateway = await cluster.startNode('a', { DATABASE_URL: through(databaseUrl, wire) });
  });
  afterAll(async () => {
    await cluster[Symbol.asyncDispose]();
    await wire.close();
  });

  /**
   * Posts a dial-out while the answers of the database are lost. Restores the line when the call is
   * stored, and returns the gateway's answer.
   */
  async function postUnanswered(number: string, headers: Record<string, string> = {}) {
    wire.muteSenderOf('accept calls');
    const answered = gateway.dialer.post({ target: `tel:+${number}` }, headers);
    const isStored = async () =>
      (await database.pool.query(`select from calls where request::text like $1`, [`%${number}%`]))
        .rowCount === 1;
    await eventually(isStored, 'the call is stored');
    wire.heal();
    return await answered;
  }

  const invitesOf = (number: string) =>
    cluster.farEnd.calls.filter((call) => call.number === number).length;

  test('is not reported as refused, and its Idempotency-Key leads to the same call', async () => {
    const number = numberFor('stay', 0, 1);
    const key = { 'idempotency-key': 'order-17' };
    const lost = await postUnanswered(number, key);

    expect(lost.status).toBe(503);
    expect(lost.headers['retry-after']).toBe('5');
    expect(lost.body).toMatchObject({
      type: 'urn:offhook:problem:acceptance-unknown',
      detail: expect.stringContaining('Repeat it with the same Idempotency-Key'),
    });
    await eventually(() => invitesOf(number) === 1, 'the phone rings');
    const again = await gateway.dialer.post({ target: `tel:+${number}` }, key);
    expect([again.status, again.headers['idempotent-replayed']]).toEqual([200, 'true']);
    await gateway.dialer.end((again.body as { callId: string }).callId);
    expect(invitesOf(number)).toBe(1);
  });

  test('without a key is not reported as refused either', async () => {
    const number = numberFor('stay', 0, 2);
    const lost = await postUnanswered(number);

    expect(lost.status).toBe(503);
    expect(lost.body).toMatchObject({
      type: 'urn:offhook:problem:acceptance-unknown',
      detail: expect.stringContaining('no Idempotency-Key'),
    });
    await eventually(() => invitesOf(number) === 1, 'the phone rings');
  });
});
