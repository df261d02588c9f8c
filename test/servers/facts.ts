// The facts of a gateway on which everything works, for tests that change one of them.

import type { ServerFacts } from '../../src/servers/server-facts.ts';
import type { NodeRow } from '../../src/store/nodes.ts';

export function factsOfServers(changes: Partial<ServerFacts> = {}): ServerFacts {
  return {
    database: { isEmbedded: false, condition: 'up', roundTripMs: 2 },
    nats: { ...healthyNats, isEmbedded: false },
    engines: { areDrachtio: true, all: [{ engine: '10.0.0.5:9022', isUp: true }] },
    thisNode: {
      ...{ ownerId: 'a-1', nodeId: 'a', calls: 3, isDraining: false },
      lease: { isHeld: true, ageMs: 1_000, durationMs: 8_000 },
    },
    nodes: { rows: [nodeRow('a'), nodeRow('b')], isCurrent: true },
    gateways: [{ trunk: 'carrier', gateway: 'sip.example', isUp: true }],
    disk: { freeBytes: 50e9, sizeBytes: 100e9 },
    backlog: { waitingCalls: 0, oldestWaitingCallMs: 0, owingCalls: 0, notificationsLateMs: 0 },
    databaseBytes: 1e9,
    ...changes,
  };
}

export const healthyNats = {
  ...{ isConnected: true, server: '10.0.0.6:4222', waitingEvents: 0, oldestWaitingMs: 0 },
  ...{ streamsAway: [], serversAway: [], streamsWithFewerReplicas: [] },
  stream: { storedBytes: 2e9, maxBytes: 20e9 },
};

export function nodeRow(nodeId: string, changes: Partial<NodeRow> = {}): NodeRow {
  const at = new Date('2026-01-01T00:00:00Z');
  return {
    ...{ ownerId: `${nodeId}-1`, nodeId, version: '0.9.0', startedAt: at, renewedAt: at },
    ...{ state: 'up', calls: 3, leaseAgeMs: 1_000 },
    ...changes,
  };
}
