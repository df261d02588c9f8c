// The conversation history: two versions, GET and POST, and the admin console's path, which names no bot.

import compress, { type FastifyCompressOptions } from '@fastify/compress';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { botId } from '../../api/dialout/dialout-schema.ts';
import { type Access, type ApiInstance, botRoute, type Caller } from '../../http/http.ts';
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
  /** Smaller answers gain nothing. */
  threshold: 1_024,
  /** Larger ones are compressed beside the event loop. */
  syncThreshold: 16_384,
  /** Requests are read as they are, as everywhere. */
  globalDecompression: false,
};

/**
 * A page takes two connections of the database for a moment, and the largest some hundred MB of
 * memory. Those who wait are answered within seconds.
 */
const atOnce = { running: 4, waiting: 100 } as const;

type Form = {
  readonly version: Version;
  readonly operationId: string;
  readonly url: string;
  readonly access: Access;
};

const ofBot = { url: '/api/public/bot/:botId/getMessages', access: botRoute('Chat History') };
const ofBotV2 = { ...ofBot, url: `${ofBot.url}V2` };
const getForms: readonly Form[] = [
  { version: 1, operationId: 'getMessages', ...ofBot },
  { version: 2, operationId: 'getMessagesV2', ...ofBotV2 },
];
const postForms: readonly Form[] = [
  { version: 1, operationId: 'searchMessages', ...ofBot },
  { version: 2, operationId: 'searchMessagesV2', ...ofBotV2 },
  {
    version: 1,
    operationId: 'searchMessagesOfAccount',
    url: '/api/public/getMessages',
    access: { scope: 'Bot Analytics > Chat History' },
  },
];

export function registerHistoryRoutes(
  parent: ApiInstance,
  caller: Caller,
  dependencies: Pick<CompanionDependencies, 'database' | 'bots' | 'clock'>,
): void {
  const reader = createHistoryReader(dependencies.database, dependencies.clock);
  const answer = createAnswer(caller, reader, dependencies.bots);
  // In a scope of their own: no other answer is large enough to be worth it.
  void parent.register((server: ApiInstance, _options, done) => {
    void server.register(compress, compression).after(() => {
      for (const form of getForms) registerGet(server, caller, answer, form);
      for (const form of postForms) registerPost(server, caller, answer, form);
    });
    done();
  });
}

type Answer = (
  form: Form,
  request: FastifyRequest,
  reply: FastifyReply,
  query: HistoryQuery,
) => Promise<z.infer<typeof messagePage>>;

function registerGet(server: ApiInstance, caller: Caller, answer: Answer, form: Form): void {
  const { version, operationId, url, access } = form;
  server.route({
    method: 'GET',
    url,
    onRequest: caller.require(access),
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
      answer(form, request, reply, toHistoryQuery(version, request.query)),
  });
}

/** Made once: two schemas of one name would be two components of the document. */
const postBodies = { 1: postBody(1), 2: postBody(2) };

function registerPost(server: ApiInstance, caller: Caller, answer: Answer, form: Form): void {
  const { version, operationId, url, access } = form;
  server.route({
    method: 'POST',
    url,
    onRequest: caller.require(access),
    schema: {
      operationId,
      summary: `Messages of ${access.botParameter === undefined ? "the account's bots" : 'a bot'} (version ${version})`,
      description: `${describe(form)} What the query can say may stand in the body instead.`,
      tags: ['history'],
      ...(access.botParameter === undefined ? {} : { params: z.object({ botId }) }),
      querystring: postQuery(version),
      body: postBodies[version],
      response: responses('A page of messages', messagePage, [400, 401, 403, 404, 406, 413, 415]),
      ...authenticated,
    },
    handler: (request, reply) =>
      answer(form, request, reply, toHistoryQuery(version, request.query, request.body)),
  });
}

function describe({ version, access }: Form): string {
  const tasks =
    version === 1 ? 'Messages of all tasks.' : 'Without messages of alert and action tasks.';
  const bots =
    access.botParameter === undefined ? ' Of every bot of the account that the app may see.' : '';
  return `${tasks}${bots} Most recent first unless \`forward\` says otherwise. Answers are compressed as \`accept-encoding\` allows (br, gzip, deflate), and end early at 32 MiB.`;
}

function createAnswer(caller: Caller, reader: HistoryReader, bots: BotDirectory): Answer {
  const scopeOf = async ({ access }: Form, request: FastifyRequest) => {
    const app = caller.of(request);
    const { accountId } = app;
    if (access.botParameter !== undefined) {
      const bot = caller.botOf(request);
      return { accountId, botIds: [bot.botId], icon: bot.iconUrl ?? '' };
    }
    const botIds = (await grantedBotIds(bots, app)) ?? (await reader.botsOf(accountId));
    return { accountId, botIds, icon: '' };
  };
  const turns = takeTurns(
    atOnce,
    () =>
      new ProblemError('unavailable', 'Too many pages are being read just now.', {
        retryAfterS: 1,
      }),
  );
  return async (form, request, reply, query) => {
    const { icon, page } = await turns(async () => {
      const { icon: ofBot, ...scope } = await scopeOf(form, request);
      return { icon: ofBot, page: await reader.read(scope, query) };
    });
    if (page === undefined) throw new ProblemError('not-found', 'There is no message of this id.');
    const { total, moreAvailable, messages } = page;
    // As text: ten thousand messages were checked on their way in. The page is sent when the reply is returned.
    return reply
      .type('application/json; charset=utf-8')
      .send(
        `{"total":${total},"moreAvailable":${moreAvailable},"icon":${JSON.stringify(icon)},"messages":[${messages.join(',')}]}`,
      ) as unknown as z.infer<typeof messagePage>;
  };
}
