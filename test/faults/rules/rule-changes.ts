// Changes the rule sets of a storm's accounts, and notes when each version may have been in force.

import type { RuleSetDocument } from '../../../src/rules/rule-set.ts';
import type { StormAccount } from './rule-accounts.ts';
import type { RulesInForce } from './rules-oracle.ts';

export type RuleChangePorts = {
  /** Stores a rule set. Resolves once a process has confirmed it. */
  readonly put: (accountId: string, name: string, document: RuleSetDocument) => Promise<void>;
  /** Releases the calls that wait, if storing does not do that. */
  readonly release: (accountId: string) => Promise<void>;
};

export class RuleChanges {
  readonly versions: (RulesInForce & { until: number })[] = [];
  readonly #ports: RuleChangePorts;

  constructor(ports: RuleChangePorts) {
    this.#ports = ports;
  }

  /** Stores the version of this turn of each of the account's rule sets. */
  async change(
    { accountId, sets }: Pick<StormAccount, 'accountId' | 'sets'>,
    turn: number,
  ): Promise<void> {
    for (const [name, versionOf] of Object.entries(sets)) {
      const from = Date.now();
      const { document, plain } = versionOf(from, turn);
      const known = this.versions.findLast(
        (one) => one.accountId === accountId && one.name === name,
      );
      // From now on, either version may be in force.
      this.versions.push({ accountId, name, rules: plain, from, until: Number.POSITIVE_INFINITY });
      await this.#ports.put(accountId, name, document);
      if (known !== undefined) known.until = Date.now();
      await this.#ports.release(accountId);
    }
  }
}
