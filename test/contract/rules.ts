// The services for calling rules, and what each account has of them: rule sets, suppressions, a
// campaign, and the record of a call.

import type { ApiServices } from '../../src/api/services.ts';
import { createPersons } from '../../src/app/persons.ts';
import type { CompanionDependencies } from '../../src/companion/dependencies.ts';
import { createSuppressing } from '../../src/dialout/suppressing.ts';
import { checkCall } from '../../src/store/rules/call-checks.ts';
import { createCallRecords } from '../../src/store/rules/call-records.ts';
import { createCampaigns } from '../../src/store/rules/campaigns.ts';
import { createPersonRemoval } from '../../src/store/rules/person-removal.ts';
import { createRuleBook } from '../../src/store/rules/rule-book.ts';
import { createRuleSetStore } from '../../src/store/rules/rule-sets.ts';
import { createSuppressedCalls } from '../../src/store/rules/suppressed-calls.ts';
import { createSuppressions } from '../../src/store/rules/suppressions.ts';
import type { Rig, TestApp } from '../companion/support.ts';
import { insertRows } from '../support/tables.ts';
import type { Pools } from './requests.ts';

type RuleServices = Pick<
  ApiServices,
  'suppressions' | 'suppressing' | 'ruleSets' | 'rules' | 'records' | 'persons' | 'campaigns'
>;

export function ruleServices(
  { database, events, clock }: CompanionDependencies,
  ownerId: string,
): RuleServices {
  const suppressions = createSuppressions(database);
  const book = createRuleBook(database.pool, () => clock.now().getTime());
  return {
    suppressions,
    suppressing: createSuppressing({
      ...{ store: suppressions, calls: createSuppressedCalls(database.pool), ownerId },
      // No process takes the calls of these tests, so there is nothing to cancel.
      registry: { refuse: () => undefined },
      askOwner: () => undefined,
    }),
    ruleSets: createRuleSetStore({ database, clock }),
    rules: {
      find: (accountId, name) => book.find(accountId, name),
      check: (call) => checkCall(database.pool, call, clock.now()),
    },
    records: createCallRecords(database),
    persons: createPersons(createPersonRemoval(database), events, { removePerson: async () => 0 }),
    campaigns: createCampaigns(database),
  };
}

/** Generated requests delete some rule sets and suppressions, and should find others. */
const copies = 20;

export async function addRules(rig: Rig, app: TestApp): Promise<Pools> {
  const campaign = `autumn-${app.accountId}`;
  const numbers = await addSuppressions(rig, app);
  const at = new Date('2026-11-20T09:00:00.000Z');
  await insertRows(rig.database.pool, 'campaigns', [
    {
      ...{ accountId: app.accountId, campaign, ruleSet: 'default', beganAt: at, windowFrom: at },
      ...{ decided: 0, answeredByPerson: 0, abandoned: 0 },
    },
  ]);
  await insertRows(rig.database.pool, 'call_records', [
    {
      ...{ accountId: app.accountId, callId: `call-${app.accountId}`, appId: app.appId },
      ...{ botId: `bot-${app.accountId}`, acceptedAt: at, number: numbers[0].slice(1) },
      ...{ caller: '12025550100', campaign, endedAt: at, outcome: 'completed' },
    },
  ]);
  const ruleSetNames = await addRuleSets(rig, app);
  return {
    ...{ number: numbers, campaign: [campaign] },
    // Dial-outs name only the first rule set.
    ...{ ruleSetName: ruleSetNames, rules: [ruleSetNames[0]] },
  };
}

async function addSuppressions({ database }: Rig, app: TestApp): Promise<[string, ...string[]]> {
  const first = app.accountId === 'acme' ? 0 : copies;
  const numbers = Array.from({ length: copies }, (_, index) => `+120255501${first + index + 20}`);
  const suppression = { reason: 'opt-out', source: 'web form' } as const;
  await createSuppressions(database).put(
    app,
    new Map(numbers.map((number) => [number, suppression])),
  );
  return numbers as [string, ...string[]];
}

async function addRuleSets(rig: Rig, app: TestApp): Promise<[string, ...string[]]> {
  const { accountId, appId } = app;
  const store = createRuleSetStore({ ...rig, clock: { now: () => new Date() } });
  const names = Array.from({ length: copies }, (_, index) => `rules-${accountId}-${index}`);
  for (const name of names) await store.put(accountId, name, { document: {}, appId });
  return names as [string, ...string[]];
}
