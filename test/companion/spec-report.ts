// Reports, at the end of a complete run, the items of the specification that no test has proven. A
// run of some files or tests says nothing about the other items, so it is ignored.

import type { Reporter, TestModule, TestSpecification, Vitest } from 'vitest/node';
import type { DatabaseKind } from '../support/databases.ts';
import { type SpecId, specIds } from './spec-ids.ts';

/** Repeated here, because its module is for test files and this code runs outside of them. */
const databaseKinds: readonly DatabaseKind[] = ['postgres', 'pglite'];

/** More items are missing only after failed tests, which report their own failure. */
const mostListed = 40;

type Proofs = ReadonlyMap<SpecId, ReadonlySet<DatabaseKind | 'any'>>;

export class SpecReport implements Reporter {
  #vitest: Vitest | undefined;
  #specifications: readonly TestSpecification[] = [];

  onInit(vitest: Vitest): void {
    this.#vitest = vitest;
  }

  onTestRunStart(specifications: readonly TestSpecification[]): void {
    this.#specifications = specifications;
  }

  async onTestRunEnd(modules: readonly TestModule[]): Promise<void> {
    if (this.#vitest === undefined || !(await this.#isWhole(this.#vitest))) return;
    const missing = missingFrom(proofsOf(modules));
    const count = Object.keys(specIds).length;
    if (missing.length === 0) {
      this.#vitest.logger.log(`\n All ${count} items of the specification are proven.`);
      return;
    }
    this.#vitest.logger.error(
      [
        `\n ${missing.length} of ${count} items of the specification are not proven by a test that passed:`,
        ...missing
          .slice(0, mostListed)
          .map(({ id, on }) => `  ${id} (on ${on.join(' and ')}): ${specIds[id]}`),
        ...(missing.length > mostListed ? [`  and ${missing.length - mostListed} more`] : []),
        ' A test names the items that it proves: test/companion/proves.ts\n',
      ].join('\n'),
    );
    process.exitCode = 1;
  }

  async #isWhole(vitest: Vitest): Promise<boolean> {
    if (vitest.config.testNamePattern !== undefined) return false;
    const all = await vitest.globTestSpecifications();
    return this.#specifications.length === all.length;
  }
}

export function missingFrom(
  proofs: Proofs,
): readonly { readonly id: SpecId; readonly on: readonly DatabaseKind[] }[] {
  return (Object.keys(specIds) as SpecId[]).flatMap((id) => {
    const proven = proofs.get(id);
    if (proven?.has('any') === true) return [];
    const on = databaseKinds.filter((kind) => proven?.has(kind) !== true);
    return on.length === 0 ? [] : [{ id, on }];
  });
}

function proofsOf(modules: readonly TestModule[]): Proofs {
  const proofs = new Map<SpecId, Set<DatabaseKind | 'any'>>();
  for (const module of modules) {
    for (const test of module.children.allTests('passed')) {
      for (const { id, on } of test.meta().proven ?? []) {
        proofs.set(id, (proofs.get(id) ?? new Set()).add(on));
      }
    }
  }
  return proofs;
}
