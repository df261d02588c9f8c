// Each endpoint requires the credentials and the scope that the specification names, and accepts no
// others. The table contains every endpoint of the OpenAPI document.

import { beforeAll, describe, expect, test } from 'vitest';
import { type Scope, scopes } from '../../src/store/apps/app-directory.ts';
import { databaseKinds } from '../support/databases.ts';
import { forSuite } from '../support/opened.ts';
import { startRig, type TestApp } from './support.ts';

type Endpoint = readonly [
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
  path: string,
  scheme: 'jwt' | 'apiKey',
  /** Undefined if the endpoint requires another kind of grant. */
  scope: Scope | undefined,
];

const connections = '/api/public/connections';
const calls = '/api/public/bot/{botId}/calls';
const status = 'testsuite/{testSuiteName}/{testRunId}/status';
const sessions = '{botId}/conversations/sessions/{sessionId}';
const center = '/contactcenter/api/v1/public';
const imports = `${center}/analytics/{botId}/storeContactCenterFunctionalities`;

const endpoints: readonly Endpoint[] = [
  ['GET', connections, 'apiKey', 'View Connections'],
  ['GET', `${connections}/{connectionId}`, 'apiKey', 'View Connections'],
  ['POST', connections, 'apiKey', 'Manage Connections'],
  ['PATCH', `${connections}/{connectionId}`, 'apiKey', 'Manage Connections'],
  ['DELETE', `${connections}/{connectionId}`, 'apiKey', 'Manage Connections'],
  ['POST', '/api/1.1/public/bot/{botId}/V2/contactcenter/dialout', 'jwt', 'Dialout'],
  ['GET', calls, 'jwt', 'Dialout'],
  ['DELETE', '/api/public/persons/{number}', 'jwt', 'Calling Rules'],
  ['GET', '/api/public/campaigns', 'jwt', 'Calling Rules'],
  ['GET', '/api/public/campaigns/{campaign}', 'jwt', 'Calling Rules'],
  ['GET', '/api/public/records', 'jwt', 'Calling Rules'],
  ['GET', '/api/public/rules', 'jwt', 'Calling Rules'],
  ['GET', '/api/public/rules/{ruleSetName}', 'jwt', 'Calling Rules'],
  ['PUT', '/api/public/rules/{ruleSetName}', 'jwt', 'Calling Rules'],
  ['DELETE', '/api/public/rules/{ruleSetName}', 'jwt', 'Calling Rules'],
  ['GET', '/api/public/suppressions', 'jwt', 'Calling Rules'],
  ['POST', '/api/public/suppressions', 'jwt', 'Calling Rules'],
  ['POST', '/api/public/suppressions/check', 'jwt', 'Calling Rules'],
  ['GET', '/api/public/suppressions/{number}', 'jwt', 'Calling Rules'],
  ['PUT', '/api/public/suppressions/{number}', 'jwt', 'Calling Rules'],
  ['DELETE', '/api/public/suppressions/{number}', 'jwt', 'Calling Rules'],
  ['GET', `${calls}/callers`, 'jwt', 'Dialout'],
  ['GET', `${calls}/summary`, 'jwt', 'Dialout'],
  ['GET', `${calls}/{callId}`, 'jwt', 'Dialout'],
  ['DELETE', `${calls}/{callId}`, 'jwt', 'Dialout'],
  ['GET', `${calls}/{callId}/context`, 'jwt', 'Dialout'],
  ['GET', `${calls}/{callId}/recording`, 'jwt', 'Recordings'],
  ['DELETE', `${calls}/{callId}/recording`, 'jwt', 'Recordings'],
  ['GET', `${calls}/{callId}/notifications`, 'jwt', 'Dialout'],
  ['GET', `${calls}/{callId}/events`, 'jwt', 'Dialout'],
  ['POST', `${calls}/{callId}/commands`, 'jwt', 'Dialout'],
  ['GET', '/api/public/bot/{botId}/events', 'jwt', 'Dialout'],
  ['GET', '/api/public/events', 'jwt', 'Dialout'],
  ['GET', '/api/public/sounds', 'jwt', 'Dialout'],
  ['GET', '/api/public/sounds/{soundName}', 'jwt', 'Dialout'],
  ['PUT', '/api/public/sounds/{soundName}', 'jwt', 'Dialout'],
  ['DELETE', '/api/public/sounds/{soundName}', 'jwt', 'Dialout'],
  ['GET', '/api/public/bot/{botId}/notifications', 'jwt', 'Dialout'],
  ['GET', '/api/public/calls', 'jwt', 'Dialout'],
  ['GET', '/api/public/calls/callers', 'jwt', 'Dialout'],
  ['GET', '/api/public/calls/summary', 'jwt', 'Dialout'],
  ['GET', '/api/public/calls/{callId}', 'jwt', 'Dialout'],
  ['GET', '/api/public/notifications', 'jwt', 'Dialout'],
  ['POST', '/api/public/bot/{botId}/notifications/replay', 'jwt', 'Dialout'],
  ['POST', '/api/public/bot/{botId}/notifications/{eventId}/replay', 'jwt', 'Dialout'],
  ['POST', imports, 'jwt', 'Contact Center Import and Export Feature'],
  ['GET', imports, 'jwt', 'Contact Center Import and Export Feature'],
  ['GET', `/api/public/bot/{botId}/${status}`, 'jwt', 'Batch Tests Execution'],
  ['GET', `/api/public/stream/{streamId}/${status}`, 'jwt', 'Batch Tests Execution'],
  ['POST', '/api/public/tables/{tableName}', 'jwt', undefined],
  ['GET', '/api/public/tables/{tableName}', 'jwt', undefined],
  ['GET', '/api/public/bot/{botId}/getMessages', 'jwt', 'Chat History'],
  ['POST', '/api/public/bot/{botId}/getMessages', 'jwt', 'Chat History'],
  ['GET', '/api/public/bot/{botId}/getMessagesV2', 'jwt', 'Chat History'],
  ['POST', '/api/public/bot/{botId}/getMessagesV2', 'jwt', 'Chat History'],
  ['POST', '/api/public/getMessages', 'jwt', 'Bot Analytics > Chat History'],
  ['GET', `${center}/${sessions}`, 'jwt', 'Contact Center Analytics'],
  ['GET', `/agentassist/api/v1/public/${sessions}`, 'jwt', 'Contact Center Analytics'],
];

describe.each(databaseKinds)('access on %s', (kind) => {
  let clients = 0;
  /** For each scope, an app that has only this scope, and one that has all others. */
  const only = new Map<Scope, TestApp>();
  const allBut = new Map<Scope, TestApp>();
  const rig = forSuite(() => startRig(kind));
  beforeAll(async () => {
    for (const scope of scopes) {
      only.set(scope, await rig.addApp({ scopes: [scope] }));
      allBut.set(scope, await rig.addApp({ scopes: scopes.filter((other) => other !== scope) }));
    }
    await rig.addBot({ botId: 'bot-of-rival', streamId: 'st-of-rival', accountId: 'rival' });
  });

  async function statusOf(
    [method, path]: Endpoint,
    app: TestApp | undefined,
    scheme: 'jwt' | 'apiKey',
    botId = 'bot-1',
  ): Promise<number> {
    const url = path
      .replace(/\{(botId|streamId)\}/, botId)
      .replace('{callId}', 'call-1')
      .replace(/\{\w+\}/g, 'some-id');
    const body = method === 'GET' || method === 'DELETE' ? undefined : {};
    // Each request comes from its own address: so many failures from one address would be a 429.
    clients += 1;
    const as = { as: app, scheme, from: `192.0.2.${clients % 250}` };
    const { statusCode } = await rig.ask(method as 'GET', url, body, as);
    return statusCode;
  }

  test('the table contains every endpoint of the document', async () => {
    const { paths } = (await rig.ask('GET', '/openapi.json')).json<{
      paths: Record<string, Record<string, { security?: readonly object[]; tags: string[] }>>;
    }>();
    const documented = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods)
        // The signed link is itself the credential.
        .filter(([, { security }]) => security !== undefined && security.length > 0)
        // Routes in Twilio's form use the credentials of one call: test/api/twilio.
        .filter(([, { tags }]) => !tags.includes('twilio'))
        .map(([method, { security = [] }]) =>
          [`${method.toUpperCase()} ${path}`, ...security.flatMap((way) => Object.keys(way))].join(
            ' by ',
          ),
        ),
    );

    expect(documented.toSorted()).toEqual(
      endpoints
        .map(
          ([method, path, scheme]) =>
            `${method} ${path} by ${scheme === 'apiKey' ? 'apiKey' : 'auth'}`,
        )
        .toSorted(),
    );
  });

  test.each(endpoints)(
    '%s %s requires its scheme (%s) and accepts no other',
    async (...endpoint) => {
      const [, , scheme] = endpoint;
      const wrong = scheme === 'jwt' ? 'apiKey' : 'jwt';

      expect(await statusOf(endpoint, undefined, scheme)).toBe(401);
      expect(await statusOf(endpoint, rig.acme, wrong)).toBe(401);
      expect([401, 403]).not.toContain(await statusOf(endpoint, rig.acme, scheme));
    },
  );

  test.each(endpoints.filter(([, , , scope]) => scope !== undefined))(
    '%s %s (%s) requires the scope "%s" and no other',
    async (...endpoint) => {
      const [, , scheme, scope = 'Dialout'] = endpoint;

      expect(await statusOf(endpoint, allBut.get(scope), scheme)).toBe(403);
      expect([401, 403]).not.toContain(await statusOf(endpoint, only.get(scope), scheme));
    },
  );

  test.each(endpoints.filter(([, path]) => /\{(botId|streamId)\}/.test(path)))(
    '%s %s finds no bot of another account, under either name',
    async (...endpoint) => {
      const few = await rig.addApp({ bots: ['bot-2', 'bot-of-rival'] });

      for (const name of ['bot-of-rival', 'st-of-rival']) {
        expect(await statusOf(endpoint, rig.acme, 'jwt', name)).toBe(404);
        expect(await statusOf(endpoint, few, 'jwt', name)).toBe(404);
      }
      expect(await statusOf(endpoint, few, 'jwt', 'bot-1')).toBe(404);
    },
  );
});
