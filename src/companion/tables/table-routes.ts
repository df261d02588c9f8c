// Routes at /api/public/tables/{tableName}. POST adds one row to a data table, and GET reads the
// table's rows in pages. Apps that are listed in the table's definition may read and write.

import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { timestamp } from '../../calls/contract/timestamp.ts';
import type { ApiInstance, Clients } from '../../http/http.ts';
import { invalidRequest, ProblemError } from '../../http/problem.ts';
import { authenticated, responses } from '../../http/route-schema.ts';
import { identifier, isId } from '../../lib/ids.ts';
import { createLookupCache } from '../../lib/lookup-cache.ts';
import { createDataTables, type DefinedTable } from '../../store/data-tables.ts';
import type { CompanionDependencies } from '../dependencies.ts';
import { nextCursor, pageParameters } from '../pages.ts';
import { checkRow } from './row-check.ts';
import { readRows, systemColumnsOf } from './stored-rows.ts';

/**
 * A replaced definition may be used for another `ttlMs`. We don't cache that a table is missing.
 */
const cacheOptions = { ttlMs: 5_000, maxEntries: 1_000 };

// This is a loose object rather than a record, because a column may be named `constructor`, and zod
// would then mistake the row for a class instance.
const insertBody = z
  .object({ data: z.looseObject({}).describe('the value of each column, by column name') })
  .meta({
    id: 'DataTableInsert',
    examples: [{ data: { name: 'Jane Doe', visits: 3, firstVisit: '2026-11-20' } }],
  });

const rowExample = {
  name: 'Jane Doe',
  visits: 3,
  firstVisit: '2026-11-20',
  Created_On: '2026-11-20T09:30:00.000Z',
  Updated_On: '2026-11-20T09:30:00.000Z',
  Created_By: 'app-0d9c4c52-9a63-4a7e-a7ab-0f1b5a9f7f10',
  Updated_By: 'app-0d9c4c52-9a63-4a7e-a7ab-0f1b5a9f7f10',
  sys_Id: 'sys-6f1d2a4e-3c52-4f0e-8d0b-0a8c7f6d1e21',
  _id: '6f1d2a4e-3c52-4f0e-8d0b-0a8c7f6d1e21',
};

const storedRow = z
  .looseObject({
    Created_On: timestamp,
    Updated_On: timestamp,
    Created_By: z.string().describe('the app that wrote the row'),
    Updated_By: z.string(),
    sys_Id: z.string().describe('`sys-<uuid>`'),
    _id: z.string(),
  })
  .meta({
    id: 'DataTableRow',
    description: "The table's columns, and the columns that the service adds to each row.",
    examples: [rowExample],
  });

const rowPage = z
  .object({ rows: z.array(storedRow).readonly().describe('newest first'), nextCursor })
  .meta({
    id: 'DataTablePage',
    examples: [{ rows: [rowExample], nextCursor: 'MTc5NTE2NzA2NzAwMC5zeXM' }],
  });

const tableParams = z.object({
  tableName: identifier.describe("name of one of the account's tables"),
});

export function registerTableRoutes(
  server: ApiInstance,
  clients: Clients,
  dependencies: CompanionDependencies,
): void {
  const { tables, grantedTable } = openTables(clients, dependencies);
  const common = {
    url: '/api/public/tables/:tableName',
    onRequest: [
      clients.require({ scheme: 'jwt' }),
      // Check access before reading the body, just as we do for scopes.
      async (request: FastifyRequest) => {
        await grantedTable(request);
      },
    ],
  };

  server.route({
    ...common,
    method: 'GET',
    schema: {
      operationId: 'listRows',
      summary: 'Rows of a data table, newest first',
      description:
        'For apps that may write to the table. Rows are returned as they were stored, even if they were written under an earlier definition.',
      tags: ['tables'],
      params: tableParams,
      querystring: z.strictObject(pageParameters),
      response: responses('A page of rows', rowPage, [400, 401, 403, 404, 406]),
      ...authenticated,
    },
    handler: async (request) => {
      const table = await grantedTable(request);
      return await readRows(dependencies.database.reads(table.accountId), table, request.query);
    },
  });

  server.route({
    ...common,
    method: 'POST',
    schema: {
      operationId: 'insertRow',
      summary: 'Add a row to a data table',
      description:
        "The app does not need a scope, but the table's definition must grant it write access. `errors` lists every column that is unknown, missing or has the wrong type. Times are stored in UTC with milliseconds. A column that is not required may be null or omitted.",
      tags: ['tables'],
      params: tableParams,
      body: insertBody,
      response: responses('The stored row', storedRow, [400, 401, 403, 404, 406, 413, 415]),
      ...authenticated,
    },
    handler: async (request) => {
      const table = await grantedTable(request);
      const checked = checkRow(table, request.body.data);
      if (!checked.ok) throw invalidRequest(checked.errors);
      const stored = await tables.insert(table, checked.row, clients.appOf(request).appId);
      return { ...checked.row, ...systemColumnsOf(stored) };
    },
  });
}

/**
 * Opens the account's tables. An app with access to a table may both write and read.
 */
function openTables(clients: Clients, dependencies: CompanionDependencies) {
  const tables = createDataTables(dependencies);
  const defined = createLookupCache<DefinedTable>(
    async (key) => {
      const [accountId = '', name = ''] = key.split('/');
      const definition = await tables.find(accountId, name);
      if (definition === undefined) throw noSuchTable();
      return { ...definition, accountId };
    },
    cacheOptions,
    () => dependencies.clock.now().getTime(),
  );
  const grantedTable = async (request: FastifyRequest): Promise<DefinedTable> => {
    const { accountId, appId } = clients.appOf(request);
    const { tableName } = request.params as { tableName: string };
    if (!isId(tableName)) throw noSuchTable();
    const table = await defined.memo(`${accountId}/${tableName}`);
    if (table.writers.some((writer) => writer === '*' || writer === appId)) return table;
    throw new ProblemError('forbidden', `The table "${tableName}" grants no access to the app.`);
  };
  return { tables, grantedTable };
}

function noSuchTable(): ProblemError {
  return new ProblemError('not-found', 'There is no such table.');
}
