// Serves what the page shows of the user's own account beside the API's routes: failing receivers,
// the calls that calling rules hold, and the sandbox numbers.

import { z } from 'zod';
import { appScopeOf } from '../api/app-scope.ts';
import type { ApiServices } from '../api/services.ts';
import type { ApiInstance, Clients } from '../http/http.ts';
import type { AppScope } from '../interactions/call-queries.ts';
import type { HeldCalls } from '../interactions/held-calls.ts';
import type { FailingReceiver } from '../notifier/failing-receivers.ts';

/** A callee of the sandbox carrier. */
export type SandboxNumberView = { readonly number: string; readonly name: string };

export type AccountSources = {
  /** Empty if no sandbox is running. */
  readonly sandboxNumbers: readonly SandboxNumberView[];
  // Each of these counts as a read by the client's account.
  readonly receivers: (accountId: string) => Promise<readonly FailingReceiver[]>;
  readonly held: (scope: AppScope) => Promise<readonly HeldCalls[]>;
  /** Makes the calls that wait for a receiver due now, and returns their number. */
  readonly retryReceiver: (accountId: string, origin: string) => Promise<number>;
};

/** A receiver's origin has no path, so it is short. */
const retryBody = z.strictObject({ origin: z.string().min(1).max(512) });

export function registerAccount(
  server: ApiInstance,
  {
    services,
    clients,
    sources,
  }: {
    readonly services: Pick<ApiServices, 'bots'>;
    readonly clients: Clients;
    readonly sources: AccountSources;
  },
): void {
  const onRequest = clients.require({ scope: 'Dialout' });

  server.get('/api/receivers', { onRequest }, async (request) => ({
    receivers: await sources.receivers(clients.appOf(request).accountId),
  }));

  server.post(
    '/api/receivers/retry',
    { onRequest, schema: { body: retryBody } },
    async (request) => ({
      calls: await sources.retryReceiver(clients.appOf(request).accountId, request.body.origin),
    }),
  );

  server.get('/api/held', { onRequest }, async (request) => ({
    held: await sources.held(await appScopeOf(services.bots, clients.appOf(request))),
  }));

  server.get('/api/sandbox', { onRequest }, async () => ({ numbers: sources.sandboxNumbers }));
}
