// Sorts the test files so that those that wait longest run first. Otherwise a worker might begin
// one of them when the other workers are about to end. Vitest sorts by recorded durations, but a
// fresh clone has none and falls back to file sizes.

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
