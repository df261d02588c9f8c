// Test runs as a test runner publishes them.

import { Objm } from '@nats-io/obj';
import type { PublishedTestRun } from '../../src/companion/test-runs/test-run-schema.ts';
import type { EventConnection } from '../../src/events/connection.ts';
import { ingestSubject } from '../../src/events/subjects.ts';

export const runId = 'tr-0d9c4c52-9a63-4a7e-a7ab-0f1b5a9f7f10';
export const suite = 'Smoke test';

const told = {
  _id: runId,
  streamId: 'st-6f1d2a4e-3c52-4f0e-8d0b-0a8c7f6d1e21',
  testSuiteId: 'ts-5a8f9f1e-7d5d-4c0c-9a50-2f6a7c1f3b42',
  utterance_count: 40,
};
const result = {
  ...told,
  isPartialFailure: false,
  triggeredBy: 'u-4711',
  botLanguage: 'en_US',
  runType: 'inDevelopment',
  startTime: '2026-11-20T09:30:00.000Z',
  __v: 0,
};

type Running = Extract<PublishedTestRun, { status: 'running' }>;
type Completed = Extract<PublishedTestRun, { status: 'completed' }>;

export function running(changes: Partial<Running> = {}): Running {
  return {
    ...told,
    testSuiteName: suite,
    status: 'running',
    result: { ...result, status: 'running' },
    totalUtterances: 40,
    utterance_ran: 10,
    percentage: 25,
    ...changes,
  };
}

export function completed(
  changes: Partial<Completed> = {},
  resultChanges: Partial<Completed['result']> = {},
): Completed {
  return {
    ...told,
    testSuiteName: suite,
    status: 'completed',
    result: {
      ...result,
      status: 'completed',
      isAvailable: true,
      endTime: '2026-11-20T09:31:07.250Z',
      f1_score: '0.93',
      precision: '0.95',
      recall: '0.91',
      results: {
        TP: 35,
        TN: 2,
        FP: 2,
        FN: 1,
        success: 37,
        failure: 3,
        traitSuccess: 8,
        traitFailure: 0,
        totalEntitiesCount: 12,
        matchedEntitiesCount: 11,
        totalTraitsCount: 8,
        matchedTraitsCount: 7,
        failedUtteranceCount: 3,
        failedEntitiesCount: 1,
      },
      ...resultChanges,
    },
    ...changes,
  };
}

export async function publish(
  { jetstream, prefix }: EventConnection,
  run: object,
  bot = 'b-1',
): Promise<void> {
  await jetstream.publish(ingestSubject(prefix, 'testruns', bot), JSON.stringify(run));
}

/** The object store into which a test runner puts a large file. */
export async function openBucket({ jetstream, prefix }: EventConnection) {
  return await new Objm(jetstream).open(`${prefix}-test-results`);
}

export function statusPath(
  name: string,
  { form = 'bot', bot = 'b-1', id = runId }: { form?: string; bot?: string; id?: string } = {},
): string {
  return `/api/public/${form}/${bot}/testsuite/${encodeURIComponent(name)}/${id}/status`;
}
