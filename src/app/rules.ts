// Opens the calling rules: the account's rule sets, and what requests are checked against.

import type { ApiServices } from '../api/services.ts';
import { sendRulesHint, watchRules } from '../events/hints.ts';
import { checkCall } from '../store/rules/call-checks.ts';
import { createRuleBook } from '../store/rules/rule-book.ts';
import { createRuleSetStore } from '../store/rules/rule-sets.ts';
import type { Environment } from './environment.ts';
import type { Events } from './events.ts';
import type { Storage } from './storage.ts';

export function openRules(
  { clock, closers }: Environment,
  { database }: Pick<Storage, 'database'>,
  { connection }: Pick<Events, 'connection'>,
): Pick<ApiServices, 'ruleSets' | 'rules'> {
  const { pool } = database;
  const book = createRuleBook(pool, () => clock.now().getTime());
  const watch = watchRules(connection, () => book.changed());
  closers.add('hints about rules', async () => watch.stop());
  const changed = (): void => {
    book.changed();
    sendRulesHint(connection);
  };
  const store = createRuleSetStore({ database, clock });
  return {
    ruleSets: {
      ...store,
      put: (...change) => store.put(...change).finally(changed),
      remove: (...change) => store.remove(...change).finally(changed),
    },
    rules: {
      find: (accountId, name) => book.find(accountId, name),
      check: (call) => checkCall(pool, call, clock.now()),
    },
  };
}
