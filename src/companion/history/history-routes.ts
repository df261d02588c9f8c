// Routes for the conversation history. There are two versions, each with GET and POST, and the
// admin console's path, which doesn't name a bot.

import compress, { type FastifyCompressOptions } from '@fastify/compress';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { botId } from '../../api/dialout/dialout-schema.ts';
import { type Access, type ApiInstance, botRoute, type Clients } from '../../http/http.ts';
import { ProblemError } from '../../http/problem.ts';
import { authenticated, responses } from '../../http/route-schema.ts';
import { takeTurns } from '../../lib/turns.ts';
import type { BotDirectory } from '../../store/apps/bot-directory.ts';
import type { CompanionDependencies } from '../dependencies.ts';
import { grantedBotIds } from '../granted-bots.ts';
import { createHistoryReader, type HistoryReader } from './history-reader.ts';
import {
  getQuery,
  type HistoryQuery,
  postBody,
  postQuery,
  toHistoryQuery,
  type Version,
} from './history-request.ts';
import { messagePage } from './message-schema.ts';

const compression: FastifyCompressOptions = {
  encodings: ['br', 'gzip', 'deflate'],
  /** It isn't worth compressing smaller responses. */
  threshold: 1_024,
  /** Above this size, we don't compress on the event loop. */
  syncThreshold: 16_384,
  /** We don't support compressed requests on any route. */
  globalDecompression: false,
};

/**
 * Limits the pages that we read concurrently. A page briefly needs two database connections, and
 * the largest pages take a few hundred MB of memory. Requests don't wait for more than a few
 * seconds.
 */
const readLimits = { running: 4, waiting: 100 } as const;

type Form = {
  readonly version: Version;
  readonly operationId: string;
  readonly url: string;
  readonly access: Access;
};

const botForm = { url: '/api/public/bot/:botId/getMessages', access: botRoute('Chat History') };
const botFormV2 = { ...botForm, url: `${botForm.url}V2` };
const getForms: readonly Form[] = [
  { version: 1, operationId: 'getMessages', ...botForm },
  { version: 2, operationId: 'getMessagesV2', ...botFormV2 },
];
const postForms: readonly Form[] = [
  { version: 1, operationId: 'searchMessages', ...botForm },
  { version: 2, operationId: 'searchMessagesV2', ...botFormV2 },
  {
    version: 1,
    operationId: 'searchMessagesOfAccount',
    url: '/api/public/getMessages',
    access: { scope: 'Bot Analytics > Chat History' },
  },
];

export function registerHistoryRoutes(
  parent: ApiInstance,
  clients: Clients,
  dependencies: Pick<CompanionDependencies, 'database' | 'bots' | 'clock'>,
): void {
  const reader = createHistoryReader(dependencies.database, dependencies.clock);
  const respond = createResponder(clients, reader, dependencies.bots);
  // We compress only the responses in this scope, because no other responses are large enough to be
  // worth compressing.
  void parent.register((server: ApiInstance, _options, done) => {
    void server.register(compress, compression).after(() => {
      for (const form of getForms) registerGet(server, clients, respond, form);
      for (const form of postForms) registerPost(server, clients, respond, form);
    });
    done();
  });
}

type Responder = (
  form: Form,
  request: FastifyRequest,
  reply: FastifyReply,
  query: HistoryQuery,
) => Promise<z.infer<typeof messagePage>>;

function registerGet(server: ApiInstance, clients: Clients, respond: Responder, form: Form): void {
  const { version, operationId, url, access } = form;
  server.route({
    method: 'GET',
    url,
    onRequest: clients.require(access),
    schema: {
      operationId,
      summary: `Messages between a bot and one of its users (version ${version})`,
      description: describe(form),
      tags: ['history'],
      params: z.object({ botId }),
      querystring: getQuery(version),
      response: responses('A page of messages', messagePage, [400, 401, 403, 404, 406]),
      ...authenticated,
    },
    handler: (request, reply) =>
      respond(form, request, reply, toHistoryQuery(version, request.query)),
  });
}

/**
 * Created only once, because two schemas with the same name would become two OpenAPI components.
 */
const postBodies = { 1: postBody(1), 2: postBody(2) };

function registerPost(server: ApiInstance, clients: Clients, respond: Responder, form: Form): void {
  const { version, operationId, url, access } = form;
  server.route({
    method: 'POST',
    url,
    onRequest: clients.require(access),
    schema: {
      operationId,
      summary: `Messages of ${access.botParameter === undefined ? "the account's bots" : 'a bot'} (version ${version})`,
      description: `${describe(form)} Query parameters may be sent in the body instead.`,
      tags: ['history'],
      ...(access.botParameter === undefined ? {} : { params: z.object({ botId }) }),
      querystring: postQuery(version),
      body: postBodies[version],
      response: responses('A page of messages', messagePage, [400, 401, 403, 404, 406, 413, 415]),
      ...authenticated,
    },
    handler: (request, reply) =>
      respond(form, request, reply, toHistoryQuery(version, request.query, request.body)),
  });
}

function describe({ version, access }: Form): string {
  const tasks =
    version === 1 ? 'Includes messages of all tasks.' : 'Omits messages of alert and action tasks.';
  const bots =
    access.botParameter === undefined ? " Covers all the account's bots that the app may see." : '';
  return `${tasks}${bots} Messages are sorted most recent first unless \`forward\` is true. Responses are compressed if \`accept-encoding\` allows it (br, gzip, deflate). A page ends early at 32 MiB.`;
}

function createResponder(clients: Clients, reader: HistoryReader, bots: BotDirectory): Responder {
  const scopeOf = async ({ access }: Form, request: FastifyRequest) => {
    const app = clients.appOf(request);
    const { accountId } = app;
    if (access.botParameter !== undefined) {
      const bot = clients.botOf(request);
      return { accountId, botIds: [bot.botId], icon: bot.iconUrl ?? '' };
    }
    const botIds = (await grantedBotIds(bots, app)) ?? (await reader.botsOf(accountId));
    return { accountId, botIds, icon: '' };
  };
  const turns = takeTurns(
    readLimits,
    () =>
      new ProblemError('unavailable', 'Too many pages are being read at the moment.', {
        retryAfterS: 1,
      }),
  );
  return async (form, request, reply, query) => {
    const { icon, page } = await turns(async () => {
      const { icon: botIcon, ...scope } = await scopeOf(form, request);
      return { icon: botIcon, page: await reader.read(scope, query) };
    });
    if (page === undefined)
      throw new ProblemError('not-found', 'There is no message with this id.');
    const { total, moreAvailable, messages } = page;
    // We can send the messages as text, because we checked them when they arrived. The handler
    // returns the reply after calling `send` on it.
    return reply
      .type('application/json; charset=utf-8')
      .send(
        `{"total":${total},"moreAvailable":${moreAvailable},"icon":${JSON.stringify(icon)},"messages":[${messages.join(',')}]}`,
      ) as unknown as z.infer<typeof messagePage>;
  };
}
