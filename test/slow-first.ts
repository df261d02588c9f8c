// The order of test files: those that wait longest first, so that no worker begins one of them when the others are about to end.
// A fresh clone knows no durations, and vitest goes by the size of files then.

import { BaseSequencer, type TestSpecification } from 'vitest/node';

const slowest = [
  'scenarios/cluster',
  'cli/commands',
  'scenarios/readiness',
  'scenarios/sandbox',
  'contract/requests',
  'faults/storm',
  'scenarios/detection',
  'scenarios/restart',
  'cli/demo',
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
