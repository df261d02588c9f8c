import { describe, expect, test } from 'vitest';
import type { ServerFacts } from '../../src/servers/server-facts.ts';
import { isFine } from '../../src/servers/server-line.ts';
import { isNatsImpaired, serverLines } from '../../src/servers/server-words.ts';
import { factsOfServers, healthyNats, nodeRow } from './facts.ts';

const now = new Date('2026-01-01T12:00:00Z');
const earlier = (ms: number): Date => new Date(now.getTime() - ms);

const troubled = (changes: Partial<ServerFacts>) =>
  serverLines(factsOfServers(changes), now)
    .filter((line) => !isFine(line))
    .map(({ name, state, affects }) => ({ name, state, affects }));

test('every server has a line, with nothing to say while it works', () => {
  const lines = serverLines(factsOfServers(), now);

  expect(lines.map(({ name, state, affects }) => [name, state, affects])).toEqual([
    ['PostgreSQL', 'up', undefined],
    ['NATS', 'up', undefined],
    ['drachtio', 'up', undefined],
    ['Gateway a', 'up', undefined],
    ['Gateway b', 'up', undefined],
    ['Trunk carrier', 'up', undefined],
    ['Disk of DATA_DIR', 'up', undefined],
  ]);
  expect(new Set(lines.map(({ id }) => id)).size).toBe(lines.length);
});

test('on a laptop the embedded servers are named', () => {
  const embedded = factsOfServers({
    database: { isEmbedded: true, condition: 'up' },
    nats: { ...healthyNats, isEmbedded: true },
    engines: { areDrachtio: false, all: [{ engine: '127.0.0.1:40000', isUp: true }] },
  });

  const names = serverLines(embedded, now).map(({ name }) => name);
  expect(names.slice(0, 3)).toEqual(['Embedded database', 'Embedded NATS', 'SIP engine']);
});

describe('the database', () => {
  const database = (condition: ServerFacts['database']['condition'], roundTripMs?: number) =>
    troubled({
      database: {
        isEmbedded: false,
        condition,
        ...(roundTripMs === undefined ? {} : { roundTripMs }),
      },
    });

  test('away: calls continue, and the line says what does not', () => {
    expect(database('away')).toEqual([
      {
        name: 'PostgreSQL',
        state: 'away',
        affects:
          'Calls that are up continue. Dial-out requests are rejected, no call is dialled, and a phone that answers now is hung up. Events and notifications wait.',
      },
    ]);
  });

  test('read-only is as bad as away', () => {
    const [line] = database('read-only');

    expect(line).toMatchObject({ state: 'away' });
    expect(line?.affects).toMatch(/^It is read-only\. Calls that are up continue\./);
  });

  test('slow: with the time that it takes', () => {
    const [line] = database('slow', 1_340);

    expect(line).toMatchObject({ state: 'impaired' });
    expect(line?.affects).toMatch(/^It takes 1\.3 s to respond/);
  });
});

describe('NATS', () => {
  const nats = (changes: object) =>
    troubled({ nats: { ...healthyNats, isEmbedded: false, ...changes } });

  test('away: with the events that wait', () => {
    const away = { isConnected: false, waitingEvents: 1_204, oldestWaitingMs: 40_400 };

    const [line] = nats(away);
    expect(line).toMatchObject({ name: 'NATS', state: 'away' });
    expect(line?.affects).toMatch(
      /^Calls continue\. Events wait \(1,204; the oldest for 40 s\)\. Commands/,
    );
  });

  test('full: connected, but no event has been accepted for ten seconds', () => {
    const failing = { waitingEvents: 3, oldestWaitingMs: 12_000, failure: 'insufficient storage' };

    expect(nats({ ...failing, failingSince: earlier(9_000) })).toEqual([]);
    expect(nats({ ...failing, failingSince: earlier(10_000) })).toEqual([
      {
        ...{ name: 'NATS', state: 'impaired' },
        affects:
          'It stores no events, because it is full or stalled. Calls continue. Events wait (3; the oldest for 12 s).',
      },
    ]);
  });

  test('a stream without a leader', () => {
    const [line] = nats({ streamsAway: ['offhook_calls'] });

    expect(line).toMatchObject({ state: 'impaired' });
    expect(line?.affects).toMatch(/^1 stream can't be used\. Calls continue\./);
  });

  test('makes the gateway degraded in the same cases', () => {
    const isImpaired = (changes: object) => isNatsImpaired({ ...healthyNats, ...changes }, now);

    expect(isImpaired({})).toBe(false);
    expect(isImpaired({ failingSince: earlier(9_000) })).toBe(false);
    expect(isImpaired({ failingSince: earlier(10_000) })).toBe(true);
    expect(isImpaired({ streamsAway: ['offhook_calls'] })).toBe(true);
  });

  test('keeps its own words, addresses and stream names from the public', () => {
    const facts = {
      ...{ ...healthyNats, isEmbedded: false, streamsAway: ['offhook_calls'] },
      streamsWithFewerReplicas: [{ stream: 'offhook_dead', replicas: 1, wanted: 3 }],
      serversAway: ['nats-2', 'nats-3'],
    };

    const line = serverLines(factsOfServers({ nats: facts }), now).find(({ id }) => id === 'nats');
    expect(line?.affects).not.toMatch(/offhook_|10\.0\.0/);
    expect(line?.detail).toBe('offhook_calls; no response from nats-2, nats-3');
  });
});

describe('SIP engines', () => {
  const engine = (port: number, isUp: boolean) => ({ engine: `10.0.0.5:${port}`, isUp });

  test('one of two is away', () => {
    const all = [engine(9022, true), engine(9023, false)];

    expect(troubled({ engines: { areDrachtio: true, all } })).toEqual([
      {
        ...{ name: 'drachtio 2', state: 'away' },
        affects: 'Calls on it were cut off. New calls use the other engines.',
      },
    ]);
  });

  test('the last one is away', () => {
    const [line] = troubled({ engines: { areDrachtio: true, all: [engine(9022, false)] } });

    expect(line?.affects).toMatch(/no call can be dialled/);
  });
});

describe('nodes', () => {
  const thisNode = factsOfServers().thisNode;

  test('late, lost, and draining ones', () => {
    const rows = [
      nodeRow('a'),
      nodeRow('b', { state: 'late', calls: 1 }),
      nodeRow('c', { state: 'lost', calls: 2 }),
      nodeRow('d', { state: 'lost', calls: 0 }),
      nodeRow('e', { state: 'draining', calls: 4 }),
    ];
    const facts = factsOfServers({ nodes: { rows, isCurrent: true } });

    const lines = serverLines(facts, now).filter(({ kind }) => kind === 'node');
    expect(lines.map(({ name, state, affects }) => [name, state, affects])).toEqual([
      ['Gateway a', 'up', undefined],
      [
        ...['Gateway b', 'impaired'],
        'It is late to renew its lease. Unless it answers the other gateways, they end its 1 call.',
      ],
      ['Gateway c', 'away', 'It is gone. Another gateway is ending its 2 calls.'],
      ['Gateway d', 'away', 'It is gone, and its calls have ended.'],
      [
        ...['Gateway e', 'draining'],
        'It is shutting down and takes no new calls. Its 4 calls can finish.',
      ],
    ]);
  });

  test('are unknown while the database is away, except for this one', () => {
    const nodes = { rows: [nodeRow('a'), nodeRow('b')], isCurrent: false };

    expect(troubled({ nodes })).toEqual([
      {
        ...{ name: 'Gateway b', state: 'unknown' },
        affects: "Its state can't be read while PostgreSQL is away.",
      },
    ]);
  });

  test('this one has lost its lease', () => {
    const lease = { isHeld: false, ageMs: 9_000, durationMs: 8_000 };

    const [line] = troubled({ thisNode: { ...thisNode, lease } });
    expect(line).toMatchObject({ name: 'Gateway a', state: 'impaired' });
    expect(line?.affects).toMatch(/^Its lease has run out/);
  });
});

test('trunks: some or all of their gateways do not respond', () => {
  const gateway = (trunk: string, name: string, isUp: boolean) => ({ trunk, gateway: name, isUp });
  const gateways = [
    ...[gateway('one', '1', true), gateway('one', '2', false)],
    ...[gateway('two', '1', false), gateway('two', '2', false)],
  ];

  expect(troubled({ gateways })).toEqual([
    {
      ...{ name: 'Trunk one', state: 'impaired' },
      affects: '1 of its 2 gateways do not respond. Calls try the others first.',
    },
    {
      ...{ name: 'Trunk two', state: 'away' },
      affects: 'Its gateways do not respond. Calls still try them, but most of these calls fail.',
    },
  ]);
});

describe('the disk', () => {
  test('has little space', () => {
    expect(troubled({ disk: { freeBytes: 4e9, sizeBytes: 100e9 } })).toEqual([
      {
        ...{ name: 'Disk of DATA_DIR', state: 'impaired' },
        affects: "4.0 GB (4%) is free. Without space, the gateway can't start again.",
      },
    ]);
    expect(troubled({ disk: { freeBytes: 0.4e9, sizeBytes: 2e9 } })).toHaveLength(1);
  });

  test('is left out if the file system does not tell its size', () => {
    const lines = serverLines(factsOfServers({ disk: undefined }), now);

    expect(lines.map(({ kind }) => kind)).not.toContain('disk');
  });
});
