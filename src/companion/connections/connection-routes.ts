// Routes for connections to model providers: list, read, create, replace the key, delete. For a
// different account's connection we respond with 404, as if it had never existed.

import { randomUUID } from 'node:crypto';
import type { ApiInstance, Clients } from '../../http/http.ts';
import { ProblemError } from '../../http/problem.ts';
import { authenticatedByApiKey, responses } from '../../http/route-schema.ts';
import type { CompanionDependencies } from '../dependencies.ts';
import {
  connection,
  connectionFilter,
  connectionIdPattern,
  connectionList,
  connectionParams,
  connectionUpdate,
  createdConnection,
  deletedConnection,
  type NewConnection,
  newConnection,
  updatedConnection,
} from './connection-schemas.ts';
import { splitSecrets } from './connection-secrets.ts';
import {
  deleteConnection,
  findConnection,
  insertConnection,
  listConnections,
  replaceKey,
} from './connection-store.ts';

const url = '/api/public/connections';
const common = { tags: ['connections'], ...authenticatedByApiKey };
const managing = { scope: 'Manage Connections', scheme: 'apiKey' } as const;

export function registerConnections(
  server: ApiInstance,
  clients: Clients,
  deps: CompanionDependencies,
): void {
  registerReads(server, clients, deps);
  registerWrites(server, clients, deps);
  registerDelete(server, clients, deps);
}

function registerReads(
  server: ApiInstance,
  clients: Clients,
  { database: { reads } }: CompanionDependencies,
): void {
  const onRequest = clients.require({ scope: 'View Connections', scheme: 'apiKey' });

  server.route({
    method: 'GET',
    url,
    onRequest,
    schema: {
      ...common,
      operationId: 'listConnections',
      summary: 'Connections of the account, newest first',
      querystring: connectionFilter,
      response: responses('Without their fields', connectionList, [400, 401, 403, 406]),
    },
    handler: (request) => {
      const { accountId } = clients.appOf(request);
      return listConnections(reads(accountId), accountId, request.query);
    },
  });

  server.route({
    method: 'GET',
    url: `${url}/:connectionId`,
    onRequest,
    schema: {
      ...common,
      operationId: 'getConnection',
      summary: 'One connection, its secrets masked',
      params: connectionParams,
      response: responses('The connection', connection, [400, 401, 403, 404, 406]),
    },
    handler: async (request) => {
      const { accountId } = clients.appOf(request);
      return found(await findConnection(reads(accountId), accountId, idOf(request.params)));
    },
  });
}

function registerWrites(server: ApiInstance, clients: Clients, deps: CompanionDependencies): void {
  const onRequest = clients.require(managing);
  const { pool } = deps.database;

  server.route({
    method: 'POST',
    url,
    onRequest,
    schema: {
      ...common,
      operationId: 'createConnection',
      summary: 'Connect a model provider',
      description:
        'Secrets (keys, and the values of `headers`) are stored encrypted, and no response contains them. Names need not be unique.',
      body: newConnection,
      response: responses(
        'The connection is stored',
        createdConnection,
        [400, 401, 403, 406, 413, 415],
      ),
    },
    handler: async (request) =>
      await insertConnection(pool, newRow(request.body, clients.appOf(request).accountId, deps)),
  });

  server.route({
    method: 'PATCH',
    url: `${url}/:connectionId`,
    onRequest,
    schema: {
      ...common,
      operationId: 'updateConnection',
      summary: 'Replace the key of a connection',
      description:
        'You can only change `fields.API_KEY`, and nothing if the provider is `API`. Any other change is rejected with 400.',
      params: connectionParams,
      body: connectionUpdate,
      response: responses(
        'The key is stored',
        updatedConnection,
        [400, 401, 403, 404, 406, 413, 415],
      ),
    },
    handler: async (request) => {
      const connectionId = idOf(request.params);
      const { accountId } = clients.appOf(request);
      const { settings, secrets } = splitSecrets(request.body);
      const updated = await replaceKey(pool, accountId, connectionId, {
        mask: settings.fields['API_KEY'] ?? '',
        sealed: deps.secrets.seal('connection', connectionId, secrets),
        modifiedOn: deps.clock.now(),
      });
      if (updated !== undefined) return updated;
      found(await findConnection(pool, accountId, connectionId));
      const detail = 'A connection with the provider `API` cannot be updated. Create a new one.';
      throw new ProblemError('invalid-request', detail);
    },
  });
}

function registerDelete(
  server: ApiInstance,
  clients: Clients,
  { database: { pool } }: CompanionDependencies,
): void {
  server.route({
    method: 'DELETE',
    url: `${url}/:connectionId`,
    onRequest: clients.require(managing),
    schema: {
      ...common,
      operationId: 'deleteConnection',
      summary: 'Delete a connection and its secrets',
      description:
        'Deletes the connection for good, regardless of its provider. The response is 404 if the connection does not exist. No body is needed, and any body is ignored, but a content type other than JSON is rejected with 415.',
      params: connectionParams,
      response: responses(
        'The connection is deleted',
        deletedConnection,
        [400, 401, 403, 404, 406, 413, 415],
      ),
    },
    handler: async (request) => {
      const connectionId = idOf(request.params);
      const { accountId } = clients.appOf(request);
      const isDeleted = await deleteConnection(pool, accountId, connectionId);
      return { connectionId: found(isDeleted ? connectionId : undefined) };
    },
  });
}

function newRow(body: NewConnection, accountId: string, deps: CompanionDependencies) {
  const { connectionName, provider, model, ...rest } = body;
  const connectionId = `cn-${randomUUID()}`;
  const { settings, secrets } = splitSecrets(rest);
  const now = deps.clock.now();
  return {
    connectionId,
    accountId,
    connectionName,
    provider,
    model: body.provider === 'API' ? (model ?? body.fields.MODEL_NAME) : body.model,
    // `FINALIZED` is only valid when creating a connection.
    status: body.provider === 'API' && body.isEnable === false ? 'INACTIVE' : 'ACTIVE',
    settings,
    secrets: deps.secrets.seal('connection', connectionId, secrets),
    createdOn: now,
    modifiedOn: now,
  } as const;
}

function idOf({ connectionId }: { readonly connectionId: string }): string {
  return found(connectionIdPattern.test(connectionId) ? connectionId : undefined);
}

function found<Value>(value: Value | undefined): Value {
  if (value !== undefined) return value;
  throw new ProblemError('not-found', 'There is no such connection.');
}
