// Opens the calling rules: the account's rule sets, and what requests are checked against.

import type { ApiServices } from '../api/services.ts';
import { sendRulesHint, watchRules } from '../events/hints.ts';
import { inBackground } from '../lib/in-background.ts';
import { checkCall } from '../store/rules/call-checks.ts';
import { releaseHeld } from '../store/rules/held-calls.ts';
import { createRuleBook } from '../store/rules/rule-book.ts';
import { createRuleSetStore } from '../store/rules/rule-sets.ts';
import type { Environment } from './environment.ts';
import type { Events } from './events.ts';
import type { Storage } from './storage.ts';

export function openRules(
  { clock, closers, logger }: Environment,
  { database }: Pick<Storage, 'database'>,
  { connection }: Pick<Events, 'connection'>,
): Pick<ApiServices, 'ruleSets' | 'rules'> {
  const { pool } = database;
  const book = createRuleBook(pool, () => clock.now().getTime());
  const watch = watchRules(connection, () => book.changed());
  closers.add('hints about rules', async () => watch.stop());
  const changed = (accountId: string): void => {
    book.changed();
    sendRulesHint(connection);
    // If this fails, the calls still wait no longer than they would have waited.
    inBackground(releaseHeld(pool, accountId), logger, 'releasing calls that wait for a rule');
  };
  const store = createRuleSetStore({ database, clock });
  return {
    ruleSets: {
      ...store,
      put: (...change) => store.put(...change).finally(() => changed(change[0])),
      remove: (...change) => store.remove(...change).finally(() => changed(change[0])),
    },
    rules: {
      find: (accountId, name) => book.find(accountId, name),
      check: (call) => checkCall(pool, call, clock.now()),
    },
  };
}
