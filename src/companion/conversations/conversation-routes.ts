// GET …/conversations/sessions/{sessionId} returns one conversation, which took place either in the
// contact center or on this gateway.

import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { botId } from '../../api/dialout/dialout-schema.ts';
import { bodyOfGet } from '../../http/body-of-get.ts';
import { type ApiInstance, botRoute, type Clients } from '../../http/http.ts';
import { invalidRequest, ProblemError } from '../../http/problem.ts';
import { authenticated, responses } from '../../http/route-schema.ts';
import { identifier } from '../../lib/ids.ts';
import type { CompanionDependencies } from '../dependencies.ts';
import { findCall } from './call-conversations.ts';
import { conversationSession, sessionId } from './conversation-schema.ts';
import {
  type Days,
  daysInBody,
  daysInQuery,
  fallsOn,
  findPublished,
} from './published-conversations.ts';

const schemes = [
  ['contactcenter', 'getConversation'],
  ['agentassist', 'getConversationOfAgentAssist'],
] as const;

export function registerConversationRoutes(
  server: ApiInstance,
  clients: Clients,
  { database, clock }: Pick<CompanionDependencies, 'database' | 'clock'>,
): void {
  for (const [scheme, operationId] of schemes) {
    server.route({
      method: 'GET',
      url: `/${scheme}/api/v1/public/:botId/conversations/sessions/:sessionId`,
      onRequest: [clients.require(botRoute('Contact Center Analytics')), requireAccept],
      ...bodyOfGet(daysInBody),
      schema: {
        operationId,
        summary: 'One conversation: participants, transfers, dispositions',
        description:
          'Returns conversations published by the contact center, and dial-out calls. For a call, use the `sessionId` from its `completed` notification. You can restrict the days in the body or in the query. The response is 404 if the session was on other days.',
        tags: ['conversations'],
        params: z.object({ botId, sessionId }),
        querystring: daysInQuery,
        headers,
        response: responses(
          'The conversation',
          conversationSession,
          [400, 401, 403, 404, 406, 413, 415],
        ),
        ...authenticated,
      },
      handler: async (request) => {
        const { accountId } = clients.appOf(request);
        if (request.headers.accountid !== accountId) throw noSuchConversation();
        const owned = { accountId, botId: clients.botOf(request).botId };
        const days = mergeDays(request.query, (request.body ?? {}) as Days);
        // If a call has been transferred to agents, the contact center's version takes priority.
        const found =
          (await findPublished(database, owned, request.params.sessionId)) ??
          (await findCall(database, owned, request.params.sessionId));
        if (found === undefined || !fallsOn(days, found.period, clock.now())) {
          throw noSuchConversation();
        }
        return found.session;
      },
    });
  }
}

/** Loose, because otherwise zod would remove all other headers from the request. */
const headers = z.looseObject({
  accountid: identifier.describe("the app's account; the response is 404 for any other account"),
  accept: z.string().describe('must include `application/json`; `*/*` alone is rejected with 406'),
});

async function requireAccept({ headers: { accept = '' } }: FastifyRequest): Promise<void> {
  // Headers that exclude JSON with `q=0` have already been rejected by an earlier check.
  if (/(^|,)\s*application\/json\s*(;|,|$)/i.test(accept)) return;
  throw new ProblemError('not-acceptable', 'Send the header `accept: application/json`.');
}

function mergeDays(query: Days, body: Days): Days {
  const both = { ...query, ...body };
  const differing = Object.entries(query).filter(
    ([name, value]) => both[name as keyof Days] !== value,
  );
  if (differing.length > 0) {
    throw invalidRequest(
      differing.map(([path]) => ({ path, message: 'differs between the body and the query' })),
    );
  }
  const { startDate, endDate } = both;
  if (startDate !== undefined && endDate !== undefined && startDate > endDate) {
    throw invalidRequest([{ path: 'endDate', message: 'must not be before startDate' }]);
  }
  return both;
}

function noSuchConversation(): ProblemError {
  return new ProblemError('not-found', 'There is no such conversation.');
}
