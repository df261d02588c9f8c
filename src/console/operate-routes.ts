// Serves the account's failing receivers and the sandbox numbers. The routes under `operate` show
// the whole gateway, including all tenants, so an app without the `Operate` scope gets a 404.

import type { FastifyRequest } from 'fastify';
import type { TrunkLimits } from '../calls/dialout-ports.ts';
import type { ApiInstance, Clients } from '../http/http.ts';
import { ProblemError } from '../http/problem.ts';
import type { DetectionSummary } from '../interactions/detection-summary.ts';
import type { FailingReceiver } from '../notifier/failing-receivers.ts';
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

/** A callee of the sandbox carrier. */
export type SandboxNumberView = { readonly number: string; readonly name: string };

export type OperateSources = {
  /** Empty if no sandbox is running. */
  readonly sandboxNumbers: readonly SandboxNumberView[];
  // Each of these counts as a read by the client's account.
  readonly receivers: (accountId: string) => Promise<readonly FailingReceiver[]>;
  readonly trunks: (accountId: string) => Promise<readonly TrunkView[]>;
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

  server.get(
    '/api/receivers',
    { onRequest: clients.require({ scope: 'Dialout' }) },
    async (request) => ({
      receivers: await sources.receivers(accountOf(request)),
    }),
  );
  server.get('/api/sandbox', { onRequest: clients.require({ scope: 'Dialout' }) }, async () => ({
    numbers: sources.sandboxNumbers,
  }));
  server.get('/api/operate/trunks', { onRequest }, async (request) => ({
    trunks: await sources.trunks(accountOf(request)),
  }));
  server.get('/api/operate/nodes', { onRequest }, async (request) => ({
    nodes: await sources.nodes(accountOf(request)),
  }));
  server.get('/api/operate/detection', { onRequest }, (request) =>
    sources.detection(accountOf(request)),
  );
}
