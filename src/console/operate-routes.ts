// Serves what concerns the whole gateway, including all tenants. An app without the `Operate` scope
// gets a 404.

import type { FastifyRequest } from 'fastify';
import type { TrunkLimits } from '../calls/dialout-ports.ts';
import type { ApiInstance, Clients } from '../http/http.ts';
import { ProblemError } from '../http/problem.ts';
import type { DetectionSummary } from '../interactions/detection-summary.ts';
import type { TrunkTotals } from '../interactions/trunk-totals.ts';
import type { NodeRow } from '../store/nodes.ts';

export type TrunkView = TrunkLimits & {
  readonly name: string;
  readonly gateways: readonly { readonly name: string; readonly isUp: boolean }[];
  readonly onIt: number;
  readonly waiting: number;
};

export type NodeView = Omit<NodeRow, 'ownerId' | 'renewedAt' | 'startedAt'> & {
  readonly startedAt: string;
  readonly isThis: boolean;
};

export type OperateSources = {
  // Each of these counts as a read by the client's account.
  readonly trunks: (accountId: string) => Promise<readonly TrunkView[]>;
  readonly trunkTotals: (accountId: string) => Promise<TrunkTotals>;
  readonly nodes: (accountId: string) => Promise<readonly NodeView[]>;
  readonly detection: (accountId: string) => Promise<DetectionSummary>;
};

export function registerOperate(
  server: ApiInstance,
  { clients, sources }: { readonly clients: Clients; readonly sources: OperateSources },
): void {
  const signedIn = clients.require({});
  const onRequest = async (request: FastifyRequest): Promise<void> => {
    await signedIn(request);
    if (clients.appOf(request).scopes.includes('Operate')) return;
    throw new ProblemError('not-found', 'There is nothing at this address.');
  };

  const accountOf = (request: FastifyRequest): string => clients.appOf(request).accountId;

  server.get('/api/operate/trunks', { onRequest }, async (request) => ({
    trunks: await sources.trunks(accountOf(request)),
  }));
  server.get('/api/operate/trunk-totals', { onRequest }, (request) =>
    sources.trunkTotals(accountOf(request)),
  );
  server.get('/api/operate/nodes', { onRequest }, async (request) => ({
    nodes: await sources.nodes(accountOf(request)),
  }));
  server.get('/api/operate/detection', { onRequest }, (request) =>
    sources.detection(accountOf(request)),
  );
}
