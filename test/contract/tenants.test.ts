// Tenants: with the credentials of one account, no operation of the document reaches or changes
// anything of another account. A new route is tested as soon as it is in the document.

import { beforeAll, describe, expect, test } from 'vitest';
import { covers } from '../specification/covers.ts';
import { databaseKinds } from '../support/databases.ts';
import { forSuite } from '../support/opened.ts';
import { tableNamesIn } from '../support/tables.ts';
import { type AuthState, badStates } from './credentials.ts';
import { bodySchemaOf, credentialsHeader, examplesOf, type Operation } from './document.ts';
import { type Gateway, plainRequest, startGateway } from './gateway.ts';
import type { ApiRequest, Pools } from './requests.ts';

describe.each(databaseKinds)('tenants on %s', { timeout: 60_000 }, (kind) => {
  let guarded: readonly Operation[];
  const gateway = forSuite(() => startGateway(kind));
  beforeAll(async () => {
    guarded = gateway.operations.filter(
      (operation) => credentialsHeader(gateway.document, operation) !== undefined,
    );
  });

  /** Builds a request with the operation's first documented body, if it has one. */
  const requestTo = (operation: Operation, pools: Pools, auth: AuthState): ApiRequest => {
    const [body] = examplesOf(gateway.document, bodySchemaOf(operation));
    return plainRequest(operation, pools, { auth, body });
  };
  /** Runs the operations. Returns their statuses, and the tables before and after. */
  const askAll = async (operations: readonly Operation[], pools: Pools, auth: AuthState) => {
    const before = await contentOf(gateway);
    const statuses: [string, number][] = [];
    for (const operation of operations) {
      const answer = await gateway.send(requestTo(operation, pools, auth));
      statuses.push([operation.operationId, answer.status]);
    }
    return { statuses, before, after: await contentOf(gateway) };
  };

  test('resources of another account are out of reach, and nothing changes', async () => {
    const naming = guarded.filter((operation) => idsOf(operation).length > 0);
    const { statuses, before, after } = await askAll(naming, gateway.rivals, 'valid');

    expect(statuses.length).toBeGreaterThan(10);
    expect(statuses.filter(([, status]) => ![401, 403, 404].includes(status))).toEqual([]);
    expect(after).toEqual(before);
  });

  test('one foreign id among own ids is enough for a refusal', async () => {
    const before = await contentOf(gateway);
    const reached: unknown[] = [];
    for (const operation of guarded) {
      for (const id of idsOf(operation)) {
        const mixed = { ...gateway.own, [id]: gateway.rivals[id] ?? [''] };
        const { status } = await gateway.send(requestTo(operation, mixed, 'valid'));
        // 400: the changed id contradicts the rest of the request.
        if (![400, 403, 404].includes(status)) reached.push([operation.operationId, id, status]);
      }
    }

    expect(reached).toEqual([]);
    expect(await contentOf(gateway)).toEqual(before);
  });

  test('requests that name no account see only their own account', async () => {
    const foreign = Object.values(gateway.rivals).flat();
    const own = new Set(Object.values(gateway.own).flat());
    const telling = foreign.filter((id) => id.length > 8 && !own.has(id));
    for (const operation of guarded.filter((each) => idsOf(each).length === 0)) {
      const { text } = await gateway.send(requestTo(operation, gateway.own, 'valid'));
      expect(telling.filter((id) => text.includes(id))).toEqual([]);
    }
    expect(telling.length).toBeGreaterThan(3);
  });

  test('the same ids work for the account that owns them', async () => {
    const statuses: unknown[] = [];
    for (const operation of guarded) {
      const { status, text } = await gateway.send(
        requestTo(operation, gateway.rivals, 'other tenant'),
      );
      if (status >= 300) statuses.push([operation.operationId, text]);
    }
    expect(statuses).toEqual([]);
    covers('service.auth.rule.jwt', 'service.auth.rule.api-key');
  });

  test('an app without the scope or grant is refused, and nothing changes', async () => {
    const { statuses, before, after } = await askAll(guarded, gateway.own, 'without scope');

    expect(statuses.filter(([, status]) => status !== 403)).toEqual([]);
    expect(after).toEqual(before);
    covers(
      'connections.list.rule.scope',
      'connections.get.rule.scope',
      'connections.create.rule.scope',
      'connections.update.rule.scope',
      'dialout.start.rule.scope',
      'imports.store.rule.scope',
      'test-runs.status.rule.scope',
      'tables.insert.rule.write-access',
      'history.messages.rule.scope-app',
      'history.messages.rule.scope-admin',
      'conversations.get.rule.scope',
    );
  });

  test.each(badStates)('bad credentials (%s) get a 401, and nothing changes', async (auth) => {
    const { statuses, before, after } = await askAll(guarded, gateway.own, auth);

    expect(statuses.filter(([, status]) => status !== 401)).toEqual([]);
    expect(after).toEqual(before);
  });
});

/** Returns the parameters that name something that belongs to an account. */
function idsOf(operation: Operation): readonly string[] {
  const ids = [
    ...['botId', 'streamId', 'callId', 'connectionId', 'tableName', 'testRunId', 'sessionId'],
    ...['accountId', 'accountid', 'eventId', 'campaign'],
    // An account can use a name that another account uses, for a resource of its own. Both may have
    // called the same person.
    ...(operation.operationId === 'putSound' ? [] : ['soundName']),
    ...(['putSuppression', 'deletePerson'].includes(operation.operationId) ? [] : ['number']),
  ];
  return operation.parameters
    .filter(({ name, required }) => required === true && ids.includes(name))
    .map(({ name }) => name);
}

/** Returns every row of every table. */
async function contentOf({ rig }: Gateway): Promise<Readonly<Record<string, unknown>>> {
  const contents: Record<string, unknown> = {};
  for (const name of await tableNamesIn(rig.database.pool)) {
    const { rows } = await rig.database.pool.query(
      `select row_to_json(r)::text as row from ${name} r order by 1`,
    );
    contents[name] = rows;
  }
  return contents;
}
