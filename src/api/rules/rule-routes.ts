// Reads and changes the account's rule sets.

import { z } from 'zod';
import { timestamp } from '../../calls/contract/timestamp.ts';
import type { ApiInstance, Clients } from '../../http/http.ts';
import { invalidRequest, ProblemError } from '../../http/problem.ts';
import { authenticated, responses } from '../../http/route-schema.ts';
import { compileRules, whyNeverPermitted } from '../../rules/compile-rules.ts';
import { ruleSetName, ruleSetSchema } from '../../rules/rule-set.ts';
import { maxRuleSets, type RuleSet } from '../../store/rules/rule-sets.ts';
import type { ApiServices } from '../services.ts';

const documentExample = {
  hours: { windows: [{ days: 'mon-fri', from: '08:00', until: '21:00' }] },
};

const ruleSetExample = {
  name: 'default',
  version: 3,
  changedAt: '2026-11-20T09:00:00.000Z',
  changedByApp: 'app-7c9e6679',
  document: documentExample,
};

const storedRuleSet = z
  .object({
    name: z.string(),
    version: z.number().int().describe('each change adds a version, and records of calls name it'),
    changedAt: timestamp,
    changedByApp: z.string().describe('id of the app that stored this version'),
    document: ruleSetSchema,
  })
  .meta({ id: 'RuleSet', examples: [ruleSetExample] });

const ruleSetList = z
  .object({
    ruleSets: z
      .array(storedRuleSet)
      .describe(`all rule sets, sorted by name; at most ${maxRuleSets}`),
  })
  .meta({ id: 'RuleSets', examples: [{ ruleSets: [ruleSetExample] }] });

const ruleSetRemoval = z
  .object({ name: z.string(), removed: z.literal(true) })
  .meta({ id: 'RuleSetRemoval', examples: [{ name: 'evening', removed: true }] });

const ruleSetParams = z.object({
  ruleSetName: ruleSetName.describe(
    '1 to 64 letters, digits, "_" and "-". `default` applies to every call whose request does not name another rule set',
  ),
});

const versionQuery = z.object({
  version: z.coerce
    .number()
    .int()
    .min(1)
    .max(2_147_483_647)
    .optional()
    .describe(
      'an earlier version, even if the rule set has been deleted. Default: the current one',
    ),
});

export type RuleRoutesDependencies = {
  readonly services: Pick<ApiServices, 'ruleSets'>;
  readonly clients: Clients;
};

const prefix = '/api/public/rules';
const tags = ['rules'];
const access = { scope: 'Calling Rules' } as const;

export function registerRuleSets(server: ApiInstance, deps: RuleRoutesDependencies): void {
  registerReads(server, deps);
  registerChanges(server, deps);
}

function registerReads(server: ApiInstance, { services, clients }: RuleRoutesDependencies): void {
  const { ruleSets } = services;

  server.route({
    method: 'GET',
    url: prefix,
    onRequest: clients.require(access),
    schema: {
      operationId: 'listRuleSets',
      summary: 'List the account’s rule sets',
      tags,
      response: responses('The rule sets', ruleSetList, [401, 403, 406]),
      ...authenticated,
    },
    handler: async (request) => ({
      ruleSets: (await ruleSets.list(clients.appOf(request).accountId)).map(bodyOf),
    }),
  });

  server.route({
    method: 'GET',
    url: `${prefix}/:ruleSetName`,
    onRequest: clients.require(access),
    schema: {
      operationId: 'getRuleSet',
      summary: 'Read one rule set',
      tags,
      params: ruleSetParams,
      querystring: versionQuery,
      response: responses('The rule set', storedRuleSet, [400, 401, 403, 404, 406]),
      ...authenticated,
    },
    handler: async (request) => {
      const { accountId } = clients.appOf(request);
      const { params, query } = request;
      const found = await ruleSets.find(accountId, params.ruleSetName, query.version);
      if (found === undefined) throw noSuchRuleSet();
      return bodyOf(found);
    },
  });
}

function registerChanges(server: ApiInstance, { services, clients }: RuleRoutesDependencies): void {
  const { ruleSets } = services;

  server.route({
    method: 'PUT',
    url: `${prefix}/:ruleSetName`,
    onRequest: clients.require(access),
    schema: {
      operationId: 'putRuleSet',
      summary: 'Store a rule set, or change it',
      description:
        'The body is the rule set’s document. When the response arrives, every call that is taken is checked against it, on every node, including calls that were already waiting. Requests to other nodes may be checked against the previous version for up to 5 seconds (`consent`, `ringAtLeastMs`). If the document is the current one, no version is added.\n\nA rule set that could never permit a call is rejected with 400.',
      tags,
      params: ruleSetParams,
      body: ruleSetSchema,
      response: responses(
        'The stored rule set',
        storedRuleSet,
        [400, 401, 403, 406, 409, 413, 415],
      ),
      ...authenticated,
    },
    handler: async (request) => {
      const { accountId, appId } = clients.appOf(request);
      const { body: document, params } = request;
      const problem = whyNeverPermitted(compileRules(document), new Date());
      if (problem !== undefined) throw invalidRequest([problem]);
      const stored = await ruleSets.put(accountId, params.ruleSetName, { document, appId });
      if (stored.kind === 'stored') return bodyOf(stored.ruleSet);
      const message = `The account has reached its limit of ${maxRuleSets} rule sets.`;
      throw new ProblemError('conflict', message);
    },
  });

  server.route({
    method: 'DELETE',
    url: `${prefix}/:ruleSetName`,
    onRequest: clients.require(access),
    schema: {
      operationId: 'deleteRuleSet',
      summary: 'Delete a rule set',
      description:
        'Requests can no longer name it. Its last version still applies to waiting calls that name it. After the deletion of `default`, no rule set applies to calls that name none. Suppressions still apply to all calls. Earlier versions stay readable.',
      tags,
      params: ruleSetParams,
      response: responses(
        'The rule set is deleted',
        ruleSetRemoval,
        [400, 401, 403, 404, 406, 413, 415],
      ),
      ...authenticated,
    },
    handler: async (request) => {
      const { ruleSetName: name } = request.params;
      if (!(await ruleSets.remove(clients.appOf(request).accountId, name))) throw noSuchRuleSet();
      return { name, removed: true as const };
    },
  });
}

function bodyOf({ changedAt, ...ruleSet }: RuleSet) {
  return { ...ruleSet, changedAt: changedAt.toISOString() };
}

function noSuchRuleSet(): ProblemError {
  return new ProblemError('not-found', 'There is no such rule set.');
}
