// Routes for a batch test run's status, and for the result file that it links to.

import { z } from 'zod';
import { authorizeBot } from '../../http/auth.ts';
import type { ApiInstance, Clients } from '../../http/http.ts';
import { ProblemError } from '../../http/problem.ts';
import { authenticated, responses } from '../../http/route-schema.ts';
import { plainId as id } from '../../lib/ids.ts';
import type { App } from '../../store/apps/app-directory.ts';
import type { Bot } from '../../store/apps/bot-directory.ts';
import type { CompanionDependencies } from '../dependencies.ts';
import { grantedBotIds } from '../granted-bots.ts';
import { createResultFiles, type ResultFile, type ResultFiles } from '../result-files.ts';
import { createResultLinks, linkBase, type ResultLinks, resultPath } from './result-links.ts';
import {
  botsOfRun,
  findTestRun,
  type StoredTestRun,
  type StreamQuery,
} from './stored-test-runs.ts';
import { languageCode, suiteName as suite, type TestRun, testRun } from './test-run-schema.ts';

const link =
  'For a completed run with a result file, `fileUrl` is a link to the CSV. The link needs no credentials and is valid for 15 minutes. Each response contains a new link.';

/** Either form of the path accepts either of the bot's identifiers. */
const forms = [
  {
    ...{ segment: 'bot', parameter: 'botId', operationId: 'getTestRunStatus' },
    ...{ means: 'bot or stream identifier', description: link },
  },
  {
    ...{ segment: 'stream', parameter: 'streamId', operationId: 'getTestRunStatusOfStream' },
    means: 'stream or bot identifier, or the `streamId` with which the run was published',
    description: `${link} A registered identifier names its bot. For any other identifier, the gateway searches the runs of the bots that the app may see. All matching runs must then belong to the same bot.`,
  },
] as const;

/**
 * Long enough for the largest file and the slowest client. If a client takes longer, it is
 * stalling.
 */
const downloadTimeoutMs = 10 * 60_000;

export function registerTestRunRoutes(
  server: ApiInstance,
  clients: Clients,
  dependencies: CompanionDependencies,
): void {
  const links = createResultLinks(dependencies.secrets, dependencies.clock);
  registerStatus(server, clients, dependencies, links);
  registerDownload(server, dependencies, links);
}

function registerStatus(
  server: ApiInstance,
  clients: Clients,
  dependencies: CompanionDependencies,
  links: ResultLinks,
): void {
  const { config } = dependencies;
  for (const { segment, parameter, operationId, means, description } of forms) {
    server.route({
      method: 'GET',
      url: `/api/public/${segment}/:${parameter}/testsuite/:testSuiteName/:testRunId/status`,
      onRequest: clients.require({
        scheme: 'jwt',
        scope: 'Batch Tests Execution',
        // With a stream, we may have to find the bot through its runs, so the handler checks
        // access.
        ...(segment === 'bot' ? { botParameter: parameter } : {}),
      }),
      schema: {
        operationId,
        summary: 'Progress and result of a batch test run',
        description,
        tags: ['test-runs'],
        params: z.object({
          [parameter]: id.describe(means),
          testSuiteName: suite.describe('name of the test suite, URL-encoded'),
          testRunId: id.describe('`tr-<uuid>`'),
        }),
        headers: z.looseObject({
          'bot-language': languageCode
            .optional()
            .describe(
              'the response is 404 if the run is in a different language; default: any language',
            ),
        }),
        response: responses('The test run', testRun, [400, 401, 403, 404, 406]),
        ...authenticated,
      },
      handler: async (request) => {
        const {
          [parameter]: streamId = '',
          testSuiteName: suiteName = '',
          testRunId: runId = '',
        } = request.params as Record<string, string>;
        const { accountId, botId } =
          segment === 'bot'
            ? clients.botOf(request)
            : await botOfStream(dependencies, clients.appOf(request), {
                streamId,
                suiteName,
                runId,
              });
        const key = { accountId, botId, runId };
        const found = await findTestRun(dependencies.database, key);
        const language = request.headers['bot-language'];
        if (found?.suiteName !== suiteName || !hasLanguage(found, language)) throw noSuchRun();
        return withLink(found, () => linkBase(request, config.http.publicUrl) + links.make(key));
      },
    });
  }
}

function registerDownload(
  server: ApiInstance,
  { database, events }: CompanionDependencies,
  links: ResultLinks,
): void {
  const files = createResultFiles(events);
  server.route({
    method: 'GET',
    url: `${resultPath}/:accountId/:botId/:testRunId`,
    // The response is the same for all invalid links, so we don't reveal what is wrong with a link.
    attachValidation: true,
    config: { responseTimeoutMs: downloadTimeoutMs },
    schema: {
      operationId: 'downloadTestResult',
      summary: 'The result of a batch test run as a CSV',
      description: 'Use `fileUrl` from the status without changing it, because it is signed.',
      tags: ['test-runs'],
      params: z.object({ accountId: id, botId: id, testRunId: id }),
      querystring: z.object({
        expires: z.string().max(20).describe('unix time, seconds'),
        signature: z.string().max(128),
      }),
      response: {
        ...responses('The result file', z.unknown(), [403, 404]),
        200: {
          description: 'The result file',
          content: { 'text/csv': { schema: z.unknown().meta({ type: 'string' }) } },
        },
      },
      security: [],
    },
    handler: async (request, reply) => {
      const { accountId, botId, testRunId: runId } = request.params;
      const key = { accountId, botId, runId };
      const isWhole = request.validationError === undefined;
      const link = isWhole ? links.check(key, request.query) : 'changed';
      if (link !== 'good') {
        throw new ProblemError(
          'forbidden',
          `The link has ${link === 'expired' ? 'expired' : 'been changed'}. Request the status of the test run again.`,
        );
      }
      const file = await openFile(files, (await findTestRun(database, key))?.fileName);
      return reply
        .headers({
          'content-type': 'text/csv; charset=utf-8',
          'content-disposition': `attachment; filename="${runId}.csv"`,
          'content-length': file.size,
          'cache-control': 'private, no-store',
          'x-content-type-options': 'nosniff',
        })
        .send(file.content);
    },
  });
}

function hasLanguage({ run }: StoredTestRun, language: string | undefined): boolean {
  const plain = (code: string): string => code.toLowerCase().replaceAll('_', '-');
  return language === undefined || plain(language) === plain(run.result.botLanguage);
}

function withLink({ run, fileName }: StoredTestRun, link: () => string): TestRun {
  if (run.status === 'running' || fileName === undefined) return run;
  return { ...run, result: { ...run.result, fileUrl: link() } };
}

async function openFile(files: ResultFiles, name: string | undefined): Promise<ResultFile> {
  const file = await (name === undefined ? undefined : files.open(name))?.catch(
    (cause: unknown) => {
      throw new ProblemError('unavailable', 'Result files cannot be read at the moment.', {
        retryAfterS: 5,
        cause,
      });
    },
  );
  if (file === undefined)
    throw new ProblemError('not-found', 'The file has expired or was removed.');
  return file;
}

/**
 * Finds the bot for a stream identifier. That's the bot registered under this identifier, or else a
 * bot with a run that was published with this identifier. We search only the client's account, and
 * only bots that the client may see, because a producer can put any stream identifier into a run.
 *
 * @throws ProblemError if no bot is found, or if the bot belongs to a different account
 */
async function botOfStream(
  { database, bots }: Pick<CompanionDependencies, 'database' | 'bots'>,
  app: App,
  wanted: Pick<StreamQuery, 'streamId' | 'suiteName' | 'runId'>,
): Promise<Bot> {
  const { streamId } = wanted;
  const registered = await bots.find(streamId);
  if (registered !== undefined) return authorizeBot(app, streamId, registered);
  const botIds = await grantedBotIds(bots, app);
  const query = { ...wanted, accountId: app.accountId, botIds };
  const [first, second] = await botsOfRun(database, query);
  if (first === undefined) throw noSuchRun();
  // A producer may put a different bot's stream identifier into its runs. If two bots claim the
  // same stream, we can't trust either of them.
  if (second !== undefined && first !== streamId) {
    const detail = 'More than one bot has runs with this stream. Name the bot instead.';
    throw new ProblemError('not-found', detail);
  }
  return authorizeBot(app, first, await bots.find(first));
}

function noSuchRun(): ProblemError {
  return new ProblemError('not-found', 'There is no such test run.');
}
