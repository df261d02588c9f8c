// The metrics of the servers under the gateway, and of the work that waits for them. We only read
// what `src/servers` already knows, so a scrape causes no query. A value that isn't known now has
// no sample, because an old value would hide an outage.

import { Gauge, type Registry } from 'prom-client';
import type { ServerFacts } from '../servers/server-facts.ts';

type Reading = (facts: ServerFacts, now: Date) => number | undefined;

const readings: Readonly<Record<string, readonly [help: string, read: Reading]>> = {
  offhook_database_up: [
    'Whether the database responds and accepts writes',
    ({ database }) => {
      if (database.condition === 'unknown') return undefined;
      return flag(database.condition === 'up' || database.condition === 'slow');
    },
  ],
  offhook_database_round_trip_seconds: [
    'Duration of the last probe of the database, with the wait for a connection',
    ({ database }) => seconds(database.roundTripMs),
  ],
  offhook_database_size_bytes: [
    'Size of the tables and indexes in PostgreSQL',
    ({ databaseBytes }) => databaseBytes,
  ],
  offhook_lease_held: [
    'Whether this process holds its lease',
    ({ thisNode }) => flag(thisNode.lease.isHeld),
  ],
  offhook_lease_age_seconds: [
    "Time since this process's lease was renewed",
    ({ thisNode }) => seconds(thisNode.lease.ageMs),
  ],
  offhook_lease_duration_seconds: [
    'Time for which a renewal grants the lease, which is longer than NODE_LEASE_MS',
    ({ thisNode }) => seconds(thisNode.lease.durationMs),
  ],
  offhook_nats_connected: [
    'Whether this process is connected to NATS',
    ({ nats }) => flag(nats.isConnected),
  ],
  offhook_nats_streams_away: [
    'Streams and buckets that cannot be used, e.g. because they have no leader',
    ({ nats }) => nats.streamsAway.length,
  ],
  offhook_nats_publish_failing_seconds: [
    'Time since NATS first refused the event that has been failing for the longest; 0 if none fails',
    ({ nats: { failingSince } }, now) =>
      failingSince === undefined ? 0 : seconds(now.getTime() - failingSince.getTime()),
  ],
  offhook_nats_stream_bytes: ['Bytes in the event stream', ({ nats }) => nats.stream?.storedBytes],
  offhook_nats_stream_max_bytes: [
    'Limit of the event stream, above which NATS removes the oldest events',
    ({ nats }) => nats.stream?.maxBytes,
  ],
  offhook_events_waiting: [
    "This process's events that are not on the stream yet",
    ({ nats }) => nats.waitingEvents,
  ],
  offhook_events_waiting_age_seconds: [
    'Time that the oldest of these events has been waiting; 0 if none waits',
    ({ nats }) => seconds(nats.oldestWaitingMs),
  ],
  offhook_calls_waiting: [
    'Calls of all nodes that wait to be dialled, counted up to 20,000; the same on every node',
    ({ backlog }) => backlog?.waitingCalls,
  ],
  offhook_calls_waiting_age_seconds: [
    'Time that the oldest of these calls has been waiting; 0 if none waits',
    ({ backlog }) => seconds(backlog?.oldestWaitingCallMs),
  ],
  offhook_notification_queues: [
    'Calls of all nodes that have notifications to send, counted up to 20,000; the same on every node',
    ({ backlog }) => backlog?.owingCalls,
  ],
  offhook_notifications_late_seconds: [
    'How late the notification is that should have been sent first; 0 if none is late',
    ({ backlog }) => seconds(backlog?.notificationsLateMs),
  ],
  offhook_disk_free_bytes: ['Free space on the disk of DATA_DIR', ({ disk }) => disk?.freeBytes],
  offhook_disk_size_bytes: ['Size of the disk of DATA_DIR', ({ disk }) => disk?.sizeBytes],
  offhook_sip_engines: ['SIP engines in the configuration', ({ engines }) => engines.all.length],
  offhook_sip_engines_connected: [
    'SIP engines to which this process is connected',
    ({ engines }) => engines.all.filter(({ isUp }) => isUp).length,
  ],
};

const nodeStates = ['up', 'draining', 'late', 'lost'] as const;

/** Returns a function that sets the metrics. Call it on each scrape. */
export function serverMetrics(
  registry: Registry,
  read: () => ServerFacts,
  now: () => Date,
): () => void {
  const registers = [registry];
  const gauges = Object.entries(readings).map(
    ([name, [help, value]]) => [new Gauge({ name, help, registers }), value] as const,
  );
  const nodes = new Gauge({
    name: 'offhook_nodes',
    help: 'Gateway processes in the database, by state; the same on every node',
    labelNames: ['state'],
    registers,
  });
  return () => {
    const facts = read();
    for (const [gauge, value] of gauges) set(gauge, value(facts, now()));
    nodes.reset();
    if (!facts.nodes.isCurrent) return;
    for (const state of nodeStates)
      nodes.set({ state }, facts.nodes.rows.filter((row) => row.state === state).length);
  };
}

function set(gauge: Gauge, value: number | undefined): void {
  if (value === undefined) gauge.remove();
  else gauge.set(value);
}

function seconds(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.max(0, ms) / 1_000;
}

function flag(isSet: boolean): number {
  return isSet ? 1 : 0;
}
