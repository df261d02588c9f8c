// Exports the records of calls as one file, whatever its length.

import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import { type ApiInstance, acceptedType, type Clients, type ContentType } from '../../http/http.ts';
import { authenticated, responses } from '../../http/route-schema.ts';
import type { CallRecord } from '../../store/rules/call-records.ts';
import { appScopeOf } from '../app-scope.ts';
import { checkPeriod, filterInstant } from '../call-schemas.ts';
import { campaignName } from '../dialout/dialout-schema.ts';
import type { ApiServices } from '../services.ts';
import { exportOf, type RecordFormat, recordFormats } from './record-export.ts';

export type RecordDependencies = {
  readonly services: Pick<ApiServices, 'bots' | 'records'>;
  readonly clients: Clients;
};

/**
 * Enough for tens of millions of records. A client that reads slowly keeps one batch in memory, and
 * is cut off after this.
 */
const maxExportMs = 3_600_000;

const contentTypes = ['application/x-ndjson', 'text/csv'] as const satisfies ContentType[];

const headersOf: Readonly<Record<RecordFormat, Readonly<Record<string, string>>>> = {
  ndjson: {
    'content-type': 'application/x-ndjson',
    'content-disposition': 'attachment; filename="records.ndjson"',
  },
  csv: {
    'content-type': 'text/csv; charset=utf-8; header=present',
    'content-disposition': 'attachment; filename="records.csv"',
  },
};

/** Strict, because an unknown filter would silently export everything. */
const recordQuery = z
  .strictObject({
    from: filterInstant.optional().describe('calls accepted at this instant or later'),
    to: filterInstant
      .optional()
      .describe('calls accepted before this instant. Default: now, when the export begins'),
    campaign: campaignName.optional().describe('calls whose request had this `campaign`'),
    format: z
      .enum(recordFormats)
      .optional()
      .describe('the format of the response; takes precedence over `Accept`. Default: ndjson'),
  })
  .superRefine(checkPeriod);

const description =
  'One record for each settled call of the bots that the app may use, in the order in which the calls were accepted, kept for `RECORD_RETENTION_DAYS`. A call has its record when its end is on the stream and nobody is connected any more, a second after its end at the latest if all servers work. The last line counts the records and has the SHA-256 of everything before it: `{"trailer": true, "records": n, "sha256": "…"}` in NDJSON, `# records=n sha256=…` in CSV. A response without this line is incomplete.';

export function registerRecords(
  server: ApiInstance,
  { services, clients }: RecordDependencies,
): void {
  const { bots, records } = services;
  const { 200: success, ...problems } = responses(
    'The records, and a line that counts them',
    z.string(),
    [400, 401, 403, 406],
  );
  server.route({
    method: 'GET',
    url: '/api/public/records',
    onRequest: clients.require({ scope: 'Calling Rules', contentTypes }),
    config: { responseTimeoutMs: maxExportMs },
    schema: {
      operationId: 'exportRecords',
      summary: 'Export the records of calls, as evidence',
      description,
      tags: ['rules'],
      querystring: recordQuery,
      response: {
        200: {
          description: success.description,
          content: Object.fromEntries(contentTypes.map((type) => [type, { schema: z.string() }])),
        },
        ...problems,
      },
      ...authenticated,
    },
    handler: async (request, reply) => {
      const { from, to, campaign, format = formatFor(request.headers.accept) } = request.query;
      const batches = records.read({
        ...(await appScopeOf(bots, clients.appOf(request))),
        ...(from === undefined ? {} : { from: new Date(from) }),
        to: to === undefined ? new Date() : new Date(to),
        ...(campaign === undefined ? {} : { campaign }),
      });
      return await sendExport(reply, batches, format);
    },
  });
}

/** Reads the first batch before it begins the response, so that an error has its status. */
async function sendExport(
  reply: FastifyReply,
  batches: AsyncIterable<readonly CallRecord[]>,
  format: RecordFormat,
): Promise<FastifyReply> {
  const parts = exportOf(batches, format);
  const first = await parts.next();
  void reply.headers(headersOf[format]);
  return await reply.send(Readable.from(continued(first, parts)));
}

function formatFor(accept: string | undefined): RecordFormat {
  return acceptedType(accept, contentTypes) === 'text/csv' ? 'csv' : 'ndjson';
}

async function* continued(
  first: IteratorResult<string, unknown>,
  parts: AsyncGenerator<string>,
): AsyncGenerator<string> {
  if (first.done !== true) yield first.value;
  yield* parts;
}
