// Reads and changes the account's suppressions: the numbers and sip: URIs that its calls may not
// reach.

import type { Suppression } from '../../calls/rules/suppression.ts';
import type { ApiInstance, Clients } from '../../http/http.ts';
import { badCursor, invalidRequest, type MemberError, ProblemError } from '../../http/problem.ts';
import { authenticated, responses } from '../../http/route-schema.ts';
import type { App } from '../../store/apps/app-directory.ts';
import type { StoredSuppression } from '../../store/rules/suppressions.ts';
import type { ApiServices } from '../services.ts';
import {
  checkBody,
  checkResultSchema,
  putSuppressionSchema,
  readSuppressedNumber,
  type SuppressionBody,
  suppressionBody,
  suppressionPageSchema,
  suppressionParams,
  suppressionQuery,
  suppressionRemovalSchema,
  suppressionSchema,
  toSuppression,
} from './suppression-schemas.ts';

export type SuppressionDependencies = {
  readonly services: Pick<ApiServices, 'suppressions' | 'suppressing'>;
  readonly clients: Clients;
};

export const suppressionsPath = '/api/public/suppressions';
export const suppressionAccess = { scope: 'Calling Rules' } as const;
const tags = ['rules'];

export function registerSuppressions(server: ApiInstance, deps: SuppressionDependencies): void {
  registerPut(server, deps);
  registerOne(server, deps);
  registerList(server, deps);
  registerCheck(server, deps);
}

const oneUrl = `${suppressionsPath}/:number`;

function registerPut(server: ApiInstance, { services, clients }: SuppressionDependencies): void {
  const { suppressions, suppressing } = services;
  server.route({
    method: 'PUT',
    url: oneUrl,
    onRequest: clients.require(suppressionAccess),
    schema: {
      operationId: 'putSuppression',
      summary: 'Suppress a number, or replace its suppression',
      description:
        'The account’s calls to the number that have not been answered are cancelled; they end as `not-permitted` with `rule: suppressed`. The response comes when they are off the wire. If that takes more than 10 s, `left` names the calls that may still ring. A call that has been answered continues.',
      tags,
      params: suppressionParams,
      body: suppressionBody,
      response: responses(
        'The suppression is stored',
        putSuppressionSchema,
        [400, 401, 403, 406, 413, 415],
      ),
      ...authenticated,
    },
    handler: async (request) => {
      const app = clients.appOf(request);
      const address = addressIn(request.params, app);
      const suppression = toSuppression(request.body);
      const left = await suppressing.suppress(app, address, suppression);
      const stored = await suppressions.find(app.accountId, address);
      // It may have ended since, or another request may have deleted it.
      const ended = { address, ...suppression, createdAt: new Date(), appId: app.appId };
      return { ...bodyOf(stored ?? ended), ...(left.length === 0 ? {} : { left: [...left] }) };
    },
  });
}

function registerOne(server: ApiInstance, { services, clients }: SuppressionDependencies): void {
  const { suppressions } = services;
  const onRequest = clients.require(suppressionAccess);

  server.route({
    method: 'GET',
    url: oneUrl,
    onRequest,
    schema: {
      operationId: 'getSuppression',
      summary: 'Read the suppression of a number',
      tags,
      params: suppressionParams,
      response: responses('The suppression', suppressionSchema, [400, 401, 403, 404, 406]),
      ...authenticated,
    },
    handler: async (request) => {
      const app = clients.appOf(request);
      const address = addressIn(request.params, app);
      return await requireSuppression(suppressions.find(app.accountId, address));
    },
  });

  server.route({
    method: 'DELETE',
    url: oneUrl,
    onRequest,
    schema: {
      operationId: 'deleteSuppression',
      summary: 'Allow calls to a number again',
      tags,
      params: suppressionParams,
      response: responses(
        'The suppression is deleted',
        suppressionRemovalSchema,
        [400, 401, 403, 404, 406, 413, 415],
      ),
      ...authenticated,
    },
    handler: async (request) => {
      const app = clients.appOf(request);
      const number = addressIn(request.params, app);
      if (!(await suppressions.remove(app.accountId, number))) throw notSuppressed();
      return { number, removed: true as const };
    },
  });
}

function registerList(server: ApiInstance, { services, clients }: SuppressionDependencies): void {
  server.route({
    method: 'GET',
    url: suppressionsPath,
    onRequest: clients.require(suppressionAccess),
    schema: {
      operationId: 'listSuppressions',
      summary: 'List the account’s suppressions',
      tags,
      querystring: suppressionQuery,
      response: responses('A page of suppressions', suppressionPageSchema, [400, 401, 403, 406]),
      ...authenticated,
    },
    handler: async (request) => {
      const { limit, cursor } = request.query;
      const after = cursor === undefined ? undefined : readCursor(cursor);
      const page = await services.suppressions.list(clients.appOf(request).accountId, {
        limit,
        ...(after === undefined ? {} : { after }),
      });
      return {
        suppressions: page.suppressions.map(bodyOf),
        ...(page.next === undefined ? {} : { nextCursor: writeCursor(page.next) }),
      };
    },
  });
}

function registerCheck(server: ApiInstance, { services, clients }: SuppressionDependencies): void {
  server.route({
    method: 'POST',
    url: `${suppressionsPath}/check`,
    onRequest: clients.require(suppressionAccess),
    // 10,000 numbers, each with quotes and a comma, and the longest of them.
    bodyLimit: maxCheckBytes,
    schema: {
      operationId: 'checkSuppressions',
      summary: 'Say which numbers are suppressed',
      tags,
      body: checkBody,
      response: responses(
        'Whether each number is suppressed',
        checkResultSchema,
        [400, 401, 403, 406, 413, 415],
      ),
      ...authenticated,
    },
    handler: async (request) => {
      const app = clients.appOf(request);
      const addresses = addressesIn(request.body.numbers, app);
      const found = await services.suppressions.check(app.accountId, addresses);
      return { results: addresses.map((number) => resultOf(number, found.get(number))) };
    },
  });
}

const maxCheckBytes = 1_024 * 1_024;

function addressIn({ number }: { readonly number: string }, app: App): string {
  const read = readSuppressedNumber(number, app);
  if (!read.ok) throw invalidRequest([{ path: 'number', message: read.message }]);
  return read.address;
}

/** Names every number that can't be read, so that a list can be corrected in one go. */
function addressesIn(numbers: readonly string[], app: App): readonly string[] {
  const addresses: string[] = [];
  const errors: MemberError[] = [];
  for (const [index, number] of numbers.entries()) {
    const read = readSuppressedNumber(number, app);
    if (read.ok) addresses.push(read.address);
    else if (errors.length < maxNumberErrors) {
      errors.push({ path: `numbers.${index}`, message: read.message });
    }
  }
  if (errors.length > 0) throw invalidRequest(errors);
  return addresses;
}

const maxNumberErrors = 100;

function resultOf(number: string, found: Suppression | undefined) {
  if (found === undefined) return { number, suppressed: false };
  const { reason, until } = found;
  const end = until === undefined ? {} : { until: until.toISOString() };
  return { number, suppressed: true, reason, ...end };
}

async function requireSuppression(
  found: Promise<StoredSuppression | undefined>,
): Promise<SuppressionBody> {
  const suppression = await found;
  if (suppression === undefined) throw notSuppressed();
  return bodyOf(suppression);
}

function bodyOf({
  address,
  reason,
  source,
  until,
  createdAt,
  appId,
}: StoredSuppression): SuppressionBody {
  return {
    number: address,
    ...{ reason, source },
    ...(until === undefined ? {} : { until: until.toISOString() }),
    createdAt: createdAt.toISOString(),
    appId,
  };
}

function notSuppressed(): ProblemError {
  return new ProblemError('not-found', 'This number is not suppressed.');
}

function writeCursor(address: string): string {
  return Buffer.from(address).toString('base64url');
}

/** @throws ProblemError if the cursor isn't a page's `nextCursor` */
function readCursor(cursor: string): string {
  const address = Buffer.from(cursor, 'base64url').toString();
  const isAddress = /^(\+|sip:)[^\p{Cc}\p{Cs}\uFFFD]{1,640}$/u.test(address);
  if (!isAddress) throw badCursor();
  return address;
}
