// Serves POST …/suppressions, an import of any length. The client may take as long as it likes, as
// long as it keeps sending.

import type { Readable } from 'node:stream';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { liftBodyTime } from '../../http/body-time.ts';
import type { ApiInstance } from '../../http/http.ts';
import { invalidRequest, ProblemError } from '../../http/problem.ts';
import { authenticated, responses } from '../../http/route-schema.ts';
import { within } from '../../lib/within.ts';
import {
  BadHeaderError,
  type ImportFormat,
  type ImportResult,
  importSuppressions,
} from './suppression-import.ts';
import {
  type SuppressionDependencies,
  suppressionAccess,
  suppressionsPath,
} from './suppression-routes.ts';

/** The longest pause within a body. */
const idleMs = 10_000;
/** Enough for 60 million numbers. After this, the response is a 503. */
const maxImportMs = 3_600_000;
/** So that the response comes soon after the last line, although calls are still cancelled. */
const cancelMs = 12_000;

const formats: Readonly<Record<string, ImportFormat>> = {
  'application/x-ndjson': 'ndjson',
  'text/csv': 'csv',
};

/** Documents the body. `importSuppressions` checks it. */
const importBody = z.unknown().meta({
  type: 'string',
  description:
    'one suppression in each line, with the members of PUT and `number`: as JSON objects (`application/x-ndjson`), or as `text/csv` with the header `number,reason,source,until`',
});

const importResultSchema = z
  .object({
    accepted: z.number().int().describe('lines that were stored'),
    replaced: z
      .number()
      .int()
      .describe('stored lines whose number was suppressed already, or was in an earlier line'),
    wrongTotal: z.number().int(),
    wrong: z
      .array(z.object({ line: z.number().int().describe('counts from 1'), message: z.string() }))
      .describe('the first 1,000 wrong lines'),
    left: z
      .array(z.string())
      .exactOptional()
      .describe(
        'calls to suppressed numbers that may still ring; absent if there are no such calls',
      ),
  })
  .meta({
    id: 'SuppressionImport',
    examples: [
      {
        ...{ accepted: 2, replaced: 1, wrongTotal: 1 },
        wrong: [{ line: 3, message: 'number: is too short for its country code' }],
      },
    ],
  });

export function registerSuppressionImport(
  server: ApiInstance,
  deps: SuppressionDependencies,
): void {
  // All other routes accept only JSON.
  void server.register((scoped: ApiInstance, _options, done) => {
    scoped.removeAllContentTypeParsers();
    scoped.addContentTypeParser(
      Object.keys(formats),
      async (_request: FastifyRequest, body: Readable) => body,
    );
    registerImport(scoped, deps);
    done();
  });
}

function registerImport(server: ApiInstance, { services, clients }: SuppressionDependencies): void {
  const { suppressing } = services;
  server.route({
    method: 'POST',
    url: suppressionsPath,
    onRequest: clients.require(suppressionAccess),
    config: { responseTimeoutMs: maxImportMs },
    schema: {
      operationId: 'importSuppressions',
      summary: 'Import suppressions, as NDJSON or CSV of any length',
      description:
        'Right lines are stored, in batches, while the body arrives; wrong ones are listed. The last line for a number counts. If the body breaks off, the problem says how many lines were stored; you can send them again. Unanswered calls to the numbers are cancelled at the end, as with PUT.',
      tags: ['rules'],
      body: importBody,
      consumes: Object.keys(formats),
      response: responses('What was stored', importResultSchema, [400, 401, 403, 406, 415]),
      ...authenticated,
    },
    handler: async (request) => {
      const app = clients.appOf(request);
      const result: ImportResult = { accepted: 0, replaced: 0, wrongTotal: 0, wrong: [] };
      const format = formats[(request.headers['content-type'] ?? '').split(';')[0]?.trim() ?? ''];
      liftBodyTime(request.raw);
      try {
        await importSuppressions(withoutPause(request.body as Readable), {
          ...{ app, format: format ?? 'ndjson', result },
          store: (suppressions) => suppressing.store(app, suppressions),
        });
      } catch (error) {
        throw brokenOff(error, result);
      }
      const left = await within(suppressing.cancelSuppressed(app.accountId), cancelMs);
      return { ...result, ...(left === undefined || left.length === 0 ? {} : { left: [...left] }) };
    },
  });
}

class PauseError extends Error {}

/** Yields a body's chunks, and fails if the next one doesn't come in time. */
async function* withoutPause(body: Readable): AsyncGenerator<Buffer> {
  const chunks = body[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  for (;;) {
    const next = await within(chunks.next(), idleMs);
    if (next === undefined) throw new PauseError('the body paused for too long');
    if (next.done === true) return;
    yield next.value;
  }
}

/** Says what was stored before the error. Other errors are the gateway's own. */
function brokenOff(error: unknown, { accepted, replaced, wrongTotal }: ImportResult): unknown {
  if (error instanceof BadHeaderError) {
    return invalidRequest([{ path: 'body', message: error.message }]);
  }
  const stored = `${accepted} lines were stored (${replaced} replaced suppressions), ${wrongTotal} were wrong.`;
  if (error instanceof PauseError) {
    return new ProblemError('request-timeout', `The body paused for too long. ${stored}`);
  }
  const isReset = error instanceof Error && 'code' in error && error.code === 'ECONNRESET';
  return isReset
    ? new ProblemError('invalid-request', `The body broke off. ${stored}`, { cause: error })
    : error;
}
