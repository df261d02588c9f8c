import { describe, expect, test } from 'vitest';
import { createMetrics } from '../../src/http/metrics.ts';
import type { ServerFacts } from '../../src/servers/server-facts.ts';
import { factsOfServers, healthyNats, nodeRow } from '../servers/facts.ts';

/** Renders the metrics about servers and returns them without their help. */
async function rendered(read: () => ServerFacts): Promise<ReadonlyMap<string, string>> {
  const text = await createMetrics({ servers: read }).render();
  const names =
    /^(offhook_(?:database|lease|nats|events|calls_waiting|notification_queues|notifications_late|disk|sip_engines|nodes)\S*) (.*)$/gm;
  return new Map([...text.matchAll(names)].map(([, name = '', value = '']) => [name, value]));
}

test('the servers and what waits for them, in seconds and bytes', async () => {
  const facts = factsOfServers({
    nats: {
      ...{ ...healthyNats, isEmbedded: false, waitingEvents: 1_204, oldestWaitingMs: 40_500 },
      streamsAway: ['offhook_calls'],
    },
    engines: {
      areDrachtio: true,
      all: [
        { engine: 'one', isUp: true },
        { engine: 'two', isUp: false },
      ],
    },
    nodes: { rows: [nodeRow('a'), nodeRow('b', { state: 'late' }), nodeRow('c')], isCurrent: true },
    backlog: {
      ...{ waitingCalls: 17, oldestWaitingCallMs: 61_000 },
      ...{ owingCalls: 5, notificationsLateMs: 2_500 },
    },
  });

  expect(Object.fromEntries(await rendered(() => facts))).toEqual({
    offhook_database_up: '1',
    offhook_database_round_trip_seconds: '0.002',
    offhook_database_size_bytes: '1000000000',
    offhook_lease_held: '1',
    offhook_lease_age_seconds: '1',
    offhook_lease_duration_seconds: '8',
    offhook_nats_connected: '1',
    offhook_nats_streams_away: '1',
    offhook_nats_publish_failing_seconds: '0',
    offhook_nats_stream_bytes: '2000000000',
    offhook_nats_stream_max_bytes: '20000000000',
    offhook_events_waiting: '1204',
    offhook_events_waiting_age_seconds: '40.5',
    offhook_calls_waiting: '17',
    offhook_calls_waiting_age_seconds: '61',
    offhook_notification_queues: '5',
    offhook_notifications_late_seconds: '2.5',
    offhook_disk_free_bytes: '50000000000',
    offhook_disk_size_bytes: '100000000000',
    offhook_sip_engines: '2',
    offhook_sip_engines_connected: '1',
    'offhook_nodes{state="up"}': '2',
    'offhook_nodes{state="draining"}': '0',
    'offhook_nodes{state="late"}': '1',
    'offhook_nodes{state="lost"}': '0',
  });
});

test('what only the database knows has no value while it is away', async () => {
  const away = factsOfServers({
    database: { isEmbedded: false, condition: 'away' },
    nodes: { rows: [nodeRow('a')], isCurrent: false },
    backlog: undefined,
    databaseBytes: undefined,
  });
  let facts = factsOfServers();
  const metrics = createMetrics({ servers: () => facts });
  await metrics.render();
  facts = away;

  const text = await metrics.render();
  expect(text).toContain('offhook_database_up 0');
  const unknown =
    /^offhook_(database_(round|size)|calls_waiting|notification_queues|notifications_late|nodes)\S* .*$/m;
  expect(text).not.toMatch(unknown);
  facts = factsOfServers();
  expect(await metrics.render()).toMatch(unknown);
});

test('a database of which nothing is known yet is neither up nor down', async () => {
  const facts = factsOfServers({ database: { isEmbedded: false, condition: 'unknown' } });

  expect([...(await rendered(() => facts)).keys()]).not.toContain('offhook_database_up');
});

test('a read-only database is down', async () => {
  const facts = factsOfServers({ database: { isEmbedded: false, condition: 'read-only' } });

  expect((await rendered(() => facts)).get('offhook_database_up')).toBe('0');
});

describe('refusals that suggest spam labels', () => {
  test('are counted by trunk and status, from 0', async () => {
    const gateways = [{ trunk: 'carrier', gateway: 'sip.example', isUp: true }];
    const metrics = createMetrics({ gateways: () => gateways });
    const counted = async () =>
      (await metrics.render()).match(/^offhook_trunk_calls_ended_total.*$/gm)?.sort();

    expect(await counted()).toEqual([
      'offhook_trunk_calls_ended_total{trunk="carrier",sip_status="603"} 0',
      'offhook_trunk_calls_ended_total{trunk="carrier",sip_status="607"} 0',
      'offhook_trunk_calls_ended_total{trunk="carrier",sip_status="608"} 0',
      'offhook_trunk_calls_ended_total{trunk="carrier",sip_status="other"} 0',
    ]);
    metrics.callEnded({ outcome: 'declined', sipStatus: 603 }, { trunk: 'carrier' });
    metrics.callEnded({ outcome: 'blocked', sipStatus: 608 }, { trunk: 'carrier' });
    metrics.callEnded({ outcome: 'busy', sipStatus: 486 }, { trunk: 'carrier' });
    metrics.callEnded({ outcome: 'completed' }, { trunk: 'carrier' });
    // A call that needs no trunk.
    metrics.callEnded({ outcome: 'declined', sipStatus: 603 });

    expect(await counted()).toEqual([
      'offhook_trunk_calls_ended_total{trunk="carrier",sip_status="603"} 1',
      'offhook_trunk_calls_ended_total{trunk="carrier",sip_status="607"} 0',
      'offhook_trunk_calls_ended_total{trunk="carrier",sip_status="608"} 1',
      'offhook_trunk_calls_ended_total{trunk="carrier",sip_status="other"} 2',
    ]);
  });
});
