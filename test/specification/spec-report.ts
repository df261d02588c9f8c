// At the end of a complete run, reports the items of the specification that no passing test covers.
// There's no report for a partial run, because it can't tell anything about the other items.

import type { Reporter, TestModule, TestSpecification, Vitest } from 'vitest/node';
import type { DatabaseKind } from '../support/databases.ts';
import { type SpecId, specIds } from './spec-ids.ts';

/** Duplicates the list in databases.ts because only test files can import that module. */
const databaseKinds: readonly DatabaseKind[] = ['postgres', 'pglite'];

/**
 * The report lists at most this many items. If there are more, many tests have failed, and these
 * report their own failures anyway.
 */
const maxListed = 40;

/** The databases on which passing tests cover an item. */
type Coverage = ReadonlyMap<SpecId, ReadonlySet<DatabaseKind | 'any'>>;

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
    const missing = missingFrom(coverageOf(modules));
    const count = Object.keys(specIds).length;
    if (missing.length === 0) {
      this.#vitest.logger.log(
        `\n All ${count} items of the specification are declared by a test that passed.`,
      );
      return;
    }
    this.#vitest.logger.error(
      [
        `\n ${missing.length} of ${count} items of the specification have no passing test that declares them:`,
        ...missing
          .slice(0, maxListed)
          .map(({ id, on }) => `  ${id} (on ${on.join(' and ')}): ${specIds[id]}`),
        ...(missing.length > maxListed ? [`  and ${missing.length - maxListed} more`] : []),
        ' A test declares the items that it covers: test/specification/covers.ts\n',
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

/** Returns the uncovered items, each with the databases on which no test passed. */
export function missingFrom(
  coverage: Coverage,
): readonly { readonly id: SpecId; readonly on: readonly DatabaseKind[] }[] {
  return (Object.keys(specIds) as SpecId[]).flatMap((id) => {
    const covered = coverage.get(id);
    if (covered?.has('any') === true) return [];
    const on = databaseKinds.filter((kind) => covered?.has(kind) !== true);
    return on.length === 0 ? [] : [{ id, on }];
  });
}

function coverageOf(modules: readonly TestModule[]): Coverage {
  const coverage = new Map<SpecId, Set<DatabaseKind | 'any'>>();
  for (const module of modules) {
    for (const test of module.children.allTests('passed')) {
      for (const { id, on } of test.meta().covered ?? []) {
        coverage.set(id, (coverage.get(id) ?? new Set()).add(on));
      }
    }
  }
  return coverage;
}
