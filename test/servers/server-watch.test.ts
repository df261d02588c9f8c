import { describe, expect, test } from 'vitest';
import { silentLogger } from '../../src/lib/logger.ts';
import { publicServers } from '../../src/servers/server-line.ts';
import { ServerWatch } from '../../src/servers/server-watch.ts';
import { recordedLogger } from '../support/recorded-logger.ts';
import { factsOfServers, healthyNats, nodeRow } from './facts.ts';

const start = new Date('2026-01-01T12:00:00Z').getTime();

function watched(logger = silentLogger) {
  const world = { facts: factsOfServers(), atMs: 0 };
  const watch = new ServerWatch({
    facts: () => world.facts,
    now: () => new Date(start + world.atMs),
    logger,
  });
  const since = (name: string) => {
    const found = watch.servers().find((server) => server.name === name);
    return found && { state: found.state, sinceMs: found.since.getTime() - start };
  };
  return { world, watch, since };
}

describe('since when', () => {
  test('a server has been in its state, not since when anybody asks', () => {
    const { world, since } = watched();
    expect(since('PostgreSQL')).toEqual({ state: 'up', sinceMs: 0 });

    world.atMs = 5_000;
    world.facts = factsOfServers({ database: { isEmbedded: false, condition: 'away' } });
    expect(since('PostgreSQL')).toEqual({ state: 'away', sinceMs: 5_000 });
    world.atMs = 60_000;
    expect(since('PostgreSQL')).toEqual({ state: 'away', sinceMs: 5_000 });
    expect(since('NATS')).toEqual({ state: 'up', sinceMs: 0 });

    world.facts = factsOfServers();
    expect(since('PostgreSQL')).toEqual({ state: 'up', sinceMs: 60_000 });
  });

  test('NATS itself knows it best', () => {
    const { world, since } = watched();
    const disconnectedSince = new Date(start + 3_210);
    world.facts = factsOfServers({
      nats: { ...healthyNats, isEmbedded: false, isConnected: false, disconnectedSince },
    });
    world.atMs = 5_000;

    expect(since('NATS')).toEqual({ state: 'away', sinceMs: 3_210 });
  });

  test('a restarted node is another process', () => {
    const { world, since } = watched();
    expect(since('Gateway b')).toEqual({ state: 'up', sinceMs: 0 });

    world.atMs = 7_000;
    const rows = [nodeRow('a'), nodeRow('b', { ownerId: 'b-2' })];
    world.facts = factsOfServers({ nodes: { rows, isCurrent: true } });
    expect(since('Gateway b')).toEqual({ state: 'up', sinceMs: 7_000 });
  });
});

test('each change is logged once', () => {
  const { logger, lines } = recordedLogger();
  const { world, watch } = watched(logger);
  watch.servers();
  world.facts = factsOfServers({ database: { isEmbedded: false, condition: 'away' } });
  for (let asked = 0; asked < 3; asked += 1) watch.servers();
  world.facts = factsOfServers();
  watch.servers();

  const changes = lines.map(({ server, state }) => [server, state]);
  expect(changes).toEqual([
    ['PostgreSQL', 'away'],
    ['PostgreSQL', 'up'],
  ]);
});

describe('what the public sees', () => {
  const seen = (changes: Parameters<typeof factsOfServers>[0]) => {
    const { world, watch } = watched();
    world.facts = factsOfServers(changes);
    return publicServers(watch.servers());
  };

  test('is a line for each server, without the names of nodes and trunks', () => {
    const since = new Date(start).toISOString();

    expect(seen({})).toEqual([
      { name: 'PostgreSQL', state: 'up', since },
      { name: 'NATS', state: 'up', since },
      { name: 'drachtio', state: 'up', since },
      { name: 'Disk of DATA_DIR', state: 'up', since },
      { name: 'Gateways', state: 'up', since },
      { name: 'Trunks', state: 'up', since },
    ]);
  });

  test('counts the nodes and trunks with a problem', () => {
    const rows = [nodeRow('a'), nodeRow('b', { state: 'late' })];
    const servers = seen({
      nodes: { rows, isCurrent: true },
      gateways: [{ trunk: 'carrier', gateway: '10.9.8.7', isUp: false }],
    });

    expect(servers.slice(-2)).toMatchObject([
      { name: 'Gateways', state: 'impaired', affects: '1 of 2 has a problem.' },
      { name: 'Trunks', state: 'away', affects: '1 of 1 has a problem.' },
    ]);
  });

  test('contains no address, no node, no trunk and none of the servers’ own words', () => {
    const servers = seen({
      nats: {
        ...{ ...healthyNats, isEmbedded: false, streamsAway: ['offhook_calls'] },
        ...{ failingSince: new Date(start - 60_000), failure: 'no space on /secret/volume' },
      },
      engines: { areDrachtio: true, all: [{ engine: '10.0.0.5:9022', isUp: false }] },
      gateways: [{ trunk: 'carrier', gateway: '10.9.8.7', isUp: false }],
    });

    expect(JSON.stringify(servers)).not.toMatch(/10\.|carrier|offhook_|secret|Gateway a/);
  });
});
