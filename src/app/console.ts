// The console with what it shows.

import type { RegisterRoutes } from '../api/server.ts';
import type { Captures } from '../capture/captures.ts';
import { consoleRoutes } from '../console/console.ts';
import type { TrunkView } from '../console/operate-routes.ts';
import { createSessionStore } from '../console/session-store.ts';
import { sandboxNumbers } from '../embedded/sandbox/sandbox-numbers.ts';
import { detectionSummary } from '../interactions/detection-summary.ts';
import { failingReceivers } from '../notifier/failing-receivers.ts';
import { trunkUse } from '../store/calls/trunk-use.ts';
import { listNodes } from '../store/nodes.ts';
import { openCaptureReader } from './captures.ts';
import type { Environment } from './environment.ts';
import type { Events } from './events.ts';
import type { SipParts } from './sip.ts';
import type { Storage } from './storage.ts';

type Parts = {
  readonly storage: Storage;
  readonly sip: SipParts;
  readonly captures: Captures;
  readonly events: Events;
};

export function openConsole(
  environment: Environment,
  { storage, sip, captures, events }: Parts,
): RegisterRoutes {
  const { config, clock } = environment;
  const { reads } = storage.database;
  return consoleRoutes({
    sessions: createSessionStore(storage.database, clock),
    publicUrl: config.http.publicUrl,
    isDrachtio: sip.isDrachtio,
    captureOf: openCaptureReader(environment, { storage, captures, events }),
    sandboxNumbers:
      sip.sandbox === undefined ? [] : sandboxNumbers.map(({ number, name }) => ({ number, name })),
    receivers: (accountId) => failingReceivers(reads(accountId), accountId),
    trunks: async (accountId) => trunksOf(sip, await trunkUse(reads(accountId))),
    nodes: async (accountId) =>
      (await listNodes(reads(accountId))).map((node) => ({
        nodeId: node.nodeId,
        state: node.state,
        calls: node.calls,
        version: node.version,
        startedAt: node.startedAt.toISOString(),
        leaseAgeMs: node.leaseAgeMs,
        isThis: node.ownerId === config.ownerId,
      })),
    detection: (accountId) => detectionSummary(reads(accountId), clock.now()),
  });
}

function trunksOf(sip: SipParts, use: Awaited<ReturnType<typeof trunkUse>>): readonly TrunkView[] {
  const gateways = sip.gateways();
  const names = [
    ...new Set([...gateways.map(({ trunk }) => trunk), ...use.map(({ trunk }) => trunk)]),
  ];
  return names.map((name) => {
    const { onIt = 0, waiting = 0 } = use.find(({ trunk }) => trunk === name) ?? {};
    return {
      name,
      gateways: gateways
        .filter(({ trunk }) => trunk === name)
        .map(({ gateway, isUp }) => ({ name: gateway, isUp })),
      ...sip.router.limitsOf(name),
      ...{ onIt, waiting },
    };
  });
}
