// Serves a call's capture (SIP messages, loudness, notes), and exports calls as JSON and pcap.

import type { FastifyRequest } from 'fastify';
import { appScopeOf } from '../api/app-scope.ts';
import { callIdOf, requireFound } from '../api/call-routes.ts';
import { callParams } from '../api/call-schemas.ts';
import type { ApiServices } from '../api/services.ts';
import { lineOf } from '../calls/contract/event-table.ts';
import type { CallId } from '../calls/contract/identity.ts';
import type { CaptureView } from '../capture/capture-store.ts';
import { pcapOf } from '../capture/pcap.ts';
import type { ApiInstance, Clients } from '../http/http.ts';
import { ProblemError } from '../http/problem.ts';

export type SharedCapture = CaptureView & {
  /**
   * The node that owns the call, if that node isn't responding. The node will store its part of the
   * capture when the call ends. Undefined if nothing is missing.
   */
  readonly keptBy?: string;
};

export type CaptureSources = {
  /** Returns undefined if nothing was captured. */
  readonly captureOf: (callId: CallId, accountId: string) => Promise<SharedCapture | undefined>;
  /** Whether the SIP engine is a drachtio-server, which doesn't report all messages. */
  readonly isDrachtio: boolean;
};

export type CaptureRouteDependencies = {
  readonly services: Pick<ApiServices, 'bots' | 'calls'>;
  readonly clients: Clients;
  readonly sources: CaptureSources;
};

const params = callParams.pick({ callId: true });

export function registerCaptures(
  server: ApiInstance,
  { services: { bots, calls }, clients, sources }: CaptureRouteDependencies,
): void {
  const onRequest = clients.require({ scope: 'Dialout' });
  const visible = async (request: FastifyRequest, text: string) => {
    const callId = callIdOf(text);
    const scope = await appScopeOf(bots, clients.appOf(request));
    return { callId, details: requireFound(await calls.details(scope, callId)) };
  };
  const captureOf = (request: FastifyRequest, callId: CallId) =>
    sources.captureOf(callId, clients.appOf(request).accountId);

  server.route({
    method: 'GET',
    url: '/api/calls/:callId/capture',
    onRequest,
    schema: { params },
    handler: async (request) => {
      const { callId, details } = await visible(request, request.params.callId);
      const lines = Object.fromEntries(
        details.timeline.map(({ eventId, type, data }) => [eventId, lineOf(type, data)]),
      );
      return { isDrachtio: sources.isDrachtio, lines, ...(await captureOf(request, callId)) };
    },
  });

  server.route({
    method: 'GET',
    url: '/api/calls/:callId/export.json',
    onRequest,
    schema: { params },
    handler: async (request, reply) => {
      const { callId, details } = await visible(request, request.params.callId);
      const scope = { accountId: clients.appOf(request).accountId, botId: details.botId };
      const notifications = await calls.notifications(scope, callId);
      const capture = await captureOf(request, callId);
      void reply.header('content-disposition', `attachment; filename="${callId}.json"`);
      return { call: details, notifications, ...capture };
    },
  });

  server.route({
    method: 'GET',
    url: '/api/calls/:callId/sip.pcap',
    onRequest,
    schema: { params },
    handler: async (request, reply) => {
      const { callId } = await visible(request, request.params.callId);
      const { sip, keptBy } = requireFound(await captureOf(request, callId));
      if (keptBy !== undefined) throw ownerUnreachable(keptBy);
      void reply.header('content-disposition', `attachment; filename="${callId}.pcap"`);
      void reply.type('application/vnd.tcpdump.pcap');
      return reply.send(pcapOf(sip?.messages ?? []));
    },
  });
}

function ownerUnreachable(node: string): ProblemError {
  return new ProblemError('unavailable', `Node ${node} owns the call and is not responding.`, {
    retryAfterS: 5,
  });
}
