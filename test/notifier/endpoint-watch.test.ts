import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { silentLogger } from '../../src/lib/logger.ts';
import { createEndpointStore } from '../../src/notifier/endpoint-store.ts';
import { type EndpointAlert, EndpointWatch } from '../../src/notifier/endpoint-watch.ts';
import { failingReceivers, retryReceiver } from '../../src/notifier/failing-receivers.ts';
import { databaseKinds, openTestDatabase } from '../support/databases.ts';
import { forSuite } from '../support/opened.ts';
import { insertRows } from '../support/tables.ts';

const minuteMs = 60_000;
const endpoint = { accountId: 'acme', appId: 'app-1', origin: 'https://hooks.example' };
const other = { ...endpoint, appId: 'app-2' };

describe.each(databaseKinds)('endpoints that keep failing, on %s', (kind) => {
  let nowMs: number;
  let published: EndpointAlert[];
  let isNatsAway: boolean;
  let failing: ReadonlyMap<string, number>;
  const database = forSuite(() => openTestDatabase(kind));
  beforeEach(() => {
    nowMs = Date.UTC(2026, 10, 20);
    published = [];
    isNatsAway = false;
    failing = new Map();
  });
  afterEach(() => database.clear());

  const startNode = () =>
    new EndpointWatch(
      {
        store: createEndpointStore(database.pool),
        publish: async (alert) => {
          if (isNatsAway) throw new Error('NATS is unreachable');
          published.push(alert);
        },
        now: () => new Date(nowMs),
        logger: silentLogger,
        onFailing: (byApp) => {
          failing = byApp;
        },
      },
      { failures: 5, failingForMs: 5 * minuteMs },
    );
  const fail = (node: EndpointWatch, times: number, of = endpoint) => {
    for (let count = 0; count < times; count += 1) node.onAttempt(of, new Date(nowMs), '503');
  };
  const told = () => published.map(({ appId, data }) => [appId, data.alert]);

  test('publish one alert for a streak, whichever nodes see it, and one for its end', async () => {
    const nodes = [startNode(), startNode()] as const;
    fail(nodes[0], 3);
    fail(nodes[1], 2);
    fail(nodes[1], 1, other);
    for (const node of nodes) await node.check();
    expect(told()).toEqual([]);

    nowMs += 6 * minuteMs;
    fail(nodes[0], 1);
    // This node looks first, because the other one may be the one that alerts.
    await nodes[0].report();
    await Promise.all(nodes.map((node) => node.check()));
    for (const node of nodes) await node.check();
    expect(told()).toEqual([['app-1', 'endpoint-failing']]);
    expect(failing).toEqual(new Map([['app-1', 1]]));
    expect(published[0]).toMatchObject({
      type: 'alert',
      accountId: 'acme',
      data: {
        endpoint: 'https://hooks.example',
        failingSince: '2026-11-20T00:00:00.000Z',
        failures: 6,
        lastError: '503',
      },
    });

    nowMs += minuteMs;
    nodes[1].onAttempt(endpoint, new Date(nowMs));
    for (const node of [...nodes, ...nodes]) await node.check();
    expect(told()).toEqual([
      ['app-1', 'endpoint-failing'],
      ['app-1', 'endpoint-recovered'],
    ]);
    expect(published[1]?.data.recoveredAt).toBe('2026-11-20T00:07:00.000Z');
    expect(failing.size).toBe(0);
  });

  test('publish no alert if they answer now and then, or have only failed for a moment', async () => {
    const node = startNode();
    for (let minute = 0; minute < 10; minute += 1) {
      fail(node, 10);
      await node.check();
      node.onAttempt(endpoint, new Date(nowMs));
      nowMs += minuteMs;
      await node.check();
    }

    expect(told()).toEqual([]);
    expect((await database.pool.query('select from notification_endpoints')).rowCount).toBe(0);
  });

  test('publish another alert for the next streak, after the end of the previous one', async () => {
    const node = startNode();
    const streak = async () => {
      fail(node, 5);
      await node.check();
      nowMs += 5 * minuteMs;
      await node.check();
    };
    await streak();
    node.onAttempt(endpoint, new Date(nowMs));
    nowMs += 1;
    await streak();
    await node.check();

    expect(told()).toEqual([
      ['app-1', 'endpoint-failing'],
      ['app-1', 'endpoint-recovered'],
      ['app-1', 'endpoint-failing'],
    ]);
    expect(new Set(published.map(({ id }) => id)).size).toBe(3);
  });

  test('a check reports whether the next check has work', async () => {
    const node = startNode();
    expect([node.hasNews(), await node.check()]).toEqual([false, false]);

    fail(node, 5);
    expect([node.hasNews(), await node.check()]).toEqual([true, true]);
    nowMs += 6 * minuteMs;
    expect([node.hasNews(), await node.check()]).toEqual([false, true]);
    node.onAttempt(endpoint, new Date(nowMs));
    expect([node.hasNews(), await node.check()]).toEqual([true, true]);
    expect(told()).toHaveLength(2);
    expect([node.hasNews(), await node.check()]).toEqual([false, false]);
  });

  test('an alert that could not be published is published later, under the same id', async () => {
    const node = startNode();
    fail(node, 5);
    await node.check();
    nowMs += 5 * minuteMs;
    isNatsAway = true;
    await node.check();
    isNatsAway = false;
    await node.check();
    expect(told()).toEqual([]);

    nowMs += 2 * minuteMs;
    await node.check();
    await node.check();
    expect(told()).toEqual([['app-1', 'endpoint-failing']]);
  });

  test('are listed with the calls that wait for them, which can be made due', async () => {
    const node = startNode();
    fail(node, 2);
    await node.report();
    const lane = (callId: string, minute: number, changes = {}) => ({
      ...{ callId, day: '2026-11-20', accountId: 'acme', origin: endpoint.origin, ...changes },
      nextAttemptAt: new Date(nowMs + minute * minuteMs),
    });
    await insertRows(database.pool, 'notification_lanes', [
      lane('call-1', 10),
      lane('call-2', 5),
      lane('call-3', -1),
      lane('call-4', 5, { accountId: 'rival' }),
      lane('call-5', 5, { origin: 'https://other.example' }),
    ]);
    const list = () => failingReceivers(database.pool, 'acme');
    const listed = { appId: 'app-1', origin: endpoint.origin, failures: 2, waitingCalls: 3 };
    expect(await list()).toMatchObject([{ ...listed, nextAttemptAt: '2026-11-19T23:59:00.000Z' }]);
    expect(await failingReceivers(database.pool, 'rival')).toEqual([]);

    const { accountId, origin } = endpoint;
    const retry = { accountId, origin, now: new Date(nowMs) };
    expect(await retryReceiver(database.pool, retry)).toBe(2);
    const { rows } = await database.pool.query<{ call_id: string }>(
      'select call_id from notification_lanes where next_attempt_at <= $1 order by call_id',
      [retry.now],
    );
    expect(rows.map((row) => row.call_id)).toEqual(['call-1', 'call-2', 'call-3']);
  });
});
