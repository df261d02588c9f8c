// Imports contact center configuration. We check all the records before we store any of them. A GET
// on the same path reads the imported records.

import { setImmediate as turn } from 'node:timers/promises';
import { z } from 'zod';
import { botId } from '../../api/dialout/dialout-schema.ts';
import { type ApiInstance, botRoute, type Clients } from '../../http/http.ts';
import { invalidRequest, type MemberError, ProblemError } from '../../http/problem.ts';
import { authenticated, responses } from '../../http/route-schema.ts';
import { exceptBody, maxErrors, memberErrors } from '../../http/validation.ts';
import { describeIssues } from '../../lib/issues.ts';
import type { App } from '../../store/apps/app-directory.ts';
import type { CompanionDependencies } from '../dependencies.ts';
import { readRecords, storeRecords } from './imported-records.ts';
import {
  importAnswer,
  importBody,
  importEnvelope,
  importedPage,
  importedQuery,
  importHeaders,
  importQuery,
  skillGroup,
} from './skill-group-schemas.ts';

/**
 * We check only this many records per turn of the event loop, because calls depend on the same
 * loop.
 */
const recordsPerTurn = 10;
/**
 * This is enough for groups with a few hundred thousand agents. Parsing JSON of this size blocks
 * the event loop for 20 ms.
 */
const bodyLimit = 5 * 1_024 * 1_024;

const url = '/contactcenter/api/v1/public/analytics/:botId/storeContactCenterFunctionalities';
const access = botRoute('Contact Center Import and Export Feature');

export function registerImports(
  server: ApiInstance,
  clients: Clients,
  dependencies: CompanionDependencies,
): void {
  registerRead(server, clients, dependencies);
  registerImport(server, clients, dependencies);
}

function registerRead(
  server: ApiInstance,
  clients: Clients,
  { database }: CompanionDependencies,
): void {
  server.route({
    method: 'GET',
    url,
    onRequest: clients.require(access),
    schema: {
      operationId: 'listImportedRecords',
      summary: 'Records that were imported',
      description:
        'Returns the records for this account, organization and type, regardless of which bot the import named. The response is 404 if the account is not the app’s own.',
      tags: ['imports'],
      params: z.object({ botId }),
      querystring: importedQuery,
      response: responses('A page of records', importedPage, [400, 401, 403, 404, 406]),
      ...authenticated,
    },
    handler: async (request) => {
      const { accountId, orgId, type, ...query } = request.query;
      assertOwn(clients.appOf(request), accountId);
      return await readRecords(database.pool, { accountId, orgId, type }, query);
    },
  });
}

function registerImport(
  server: ApiInstance,
  clients: Clients,
  { database, clock }: CompanionDependencies,
): void {
  server.route({
    method: 'POST',
    url,
    onRequest: clients.require(access),
    bodyLimit,
    schema: {
      operationId: 'importContactCenterFunctionalities',
      summary: 'Import skill groups',
      description:
        'Stores all records or none. If one is invalid, or is in the body twice, the whole import is rejected. A record replaces any earlier record with the same `_id`, account, organization and type. Account, organization and type must match everywhere in the request. The response is 404 if the account is not the app’s own. The limits are 5 MiB and 5,000 records.',
      tags: ['imports'],
      params: z.object({ botId }),
      querystring: importQuery,
      headers: importHeaders,
      body: importBody,
      response: responses(
        'The records are stored',
        importAnswer,
        [400, 401, 403, 404, 406, 413, 415],
      ),
      ...authenticated,
    },
    // This schema only documents the body. It is `readBody` that validates the body, because the
    // body must match the rest of the request.
    validatorCompiler: exceptBody,
    handler: async (request) => {
      const { accountId, orgId, type } = request.query;
      const { records, importedBy } = await readBody(request.body, {
        ...request.query,
        headerAccountId: request.headers.accountid,
      });
      assertOwn(clients.appOf(request), accountId);
      await storeRecords(database.pool, {
        ...{ accountId, orgId, type, importedBy, records },
        botId: clients.botOf(request).botId,
        importedAt: clock.now(),
      });
      return { msg: `${countOf(records)} imported.` };
    },
  });
}

function assertOwn(app: App, accountId: string): void {
  if (accountId === app.accountId) return;
  throw new ProblemError('not-found', 'There is no such account.');
}

type Named = z.output<typeof importQuery> & { readonly headerAccountId: string };

async function readBody(body: unknown, { headerAccountId, ...named }: Named) {
  const { data: envelope, error } = importEnvelope.safeParse(body, { error: describeIssues });
  if (error !== undefined) throw invalidRequest(memberErrors(error, []));
  const { metaData, data } = envelope;
  const errors: MemberError[] = [];
  if (headerAccountId !== named.accountId) {
    errors.push({ path: 'accountId', message: 'differs from the header accountId' });
  }
  for (const member of ['accountId', 'orgId', 'type'] as const) {
    if (metaData[member] === named[member]) continue;
    errors.push({ path: `metaData.${member}`, message: 'differs from the query parameter' });
  }
  const records = await checkRecords(data, errors);
  if (errors.length > 0) throw invalidRequest(errors.slice(0, maxErrors));
  return { records, importedBy: metaData.userId };
}

async function checkRecords(data: readonly unknown[], errors: MemberError[]) {
  const records: z.output<typeof skillGroup>[] = [];
  const places = new Map<string, number>();
  for (const [index, value] of data.entries()) {
    if (errors.length >= maxErrors) break;
    if (index % recordsPerTurn === 0) await turn();
    const parsed = skillGroup.safeParse(value, { error: describeIssues });
    if (parsed.success) {
      const earlier = places.get(parsed.data._id);
      if (earlier !== undefined) {
        const message = `is the _id of data.${earlier} too`;
        errors.push({ path: `data.${index}._id`, message });
      }
      places.set(parsed.data._id, index);
      records.push(parsed.data);
    } else {
      errors.push(...memberErrors(parsed.error, ['data', index]));
    }
  }
  return records;
}

function countOf({ length }: readonly unknown[]): string {
  return length === 1 ? '1 skill group was' : `${length} skill groups were`;
}
