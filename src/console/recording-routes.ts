// Serves the metadata of a stored recording, so that the page knows where its pauses are. The
// recording itself, and its deletion, are routes of the API.

import { appScopeOf } from '../api/app-scope.ts';
import { callIdOf, requireFound } from '../api/call-routes.ts';
import { callParams } from '../api/call-schemas.ts';
import type { ApiServices } from '../api/services.ts';
import type { ApiInstance, Clients } from '../http/http.ts';

export type RecordingMetadataDependencies = {
  readonly services: Pick<ApiServices, 'bots' | 'calls' | 'recordings'>;
  readonly clients: Clients;
};

export function registerRecordingMetadata(
  server: ApiInstance,
  { services: { bots, calls, recordings }, clients }: RecordingMetadataDependencies,
): void {
  server.route({
    method: 'GET',
    url: '/api/calls/:callId/recording.json',
    onRequest: clients.require({ scope: 'Recordings' }),
    schema: { params: callParams.pick({ callId: true }) },
    handler: async (request) => {
      const callId = callIdOf(request.params.callId);
      const scope = await appScopeOf(bots, clients.appOf(request));
      const { botId } = requireFound(await calls.details(scope, callId));
      const found = await recordings.find({ accountId: scope.accountId, botId }, callId);
      const metadata = found.kind === 'stored' ? await recordings.metadata(found.row) : undefined;
      return requireFound(metadata);
    },
  });
}
