// Runs the test files that wait longest first. Otherwise a worker might start one of them when the
// others are almost done. Vitest normally sorts by recorded durations, but in a fresh clone it only
// has the file sizes to go by.

import { BaseSequencer, type TestSpecification } from 'vitest/node';

const slowest = [
  'scenarios/cluster',
  'cli/commands',
  'scenarios/readiness',
  'scenarios/sandbox',
  'contract/requests',
  'faults/storm',
  'scenarios/detection',
  'scenarios/shutdown',
  'scenarios/secrets',
  'scenarios/restart',
  'cli/demo',
  'cli/apps-commands',
  'cli/secrets',
  'deployment/postgres-backup',
  'scenarios/terminal',
  'scenarios/recipes',
  'scenarios/stream-endings',
  'scenarios/voicemail',
  'scenarios/answer-stored',
];

export class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const others = await super.sort(files);
    const rank = ({ moduleId }: TestSpecification): number => {
      const at = slowest.findIndex((name) => moduleId.endsWith(`/test/${name}.test.ts`));
      return at < 0 ? slowest.length : at;
    };
    return others.sort((one, other) => rank(one) - rank(other));
  }
}
