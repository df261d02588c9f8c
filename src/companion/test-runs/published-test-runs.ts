// What the test runner publishes on `<prefix>.ingest.testruns.<botId>`: followed for as long as the process lives.

import type { BatchConsumer } from '../../events/batch-consumer.ts';
import { startIngestConsumer } from '../../events/ingest.ts';
import type { CompanionDependencies } from '../companion.ts';
import { createResultFiles, ensureResultBucket } from '../result-files.ts';
import { applyTestRuns } from './stored-test-runs.ts';
import { publishedTestRun } from './test-run-schema.ts';

/** A run tells its progress every second or so: few are ever waiting. */
const maxBatch = 50;

export async function followTestRuns({
  config,
  database,
  bots,
  events,
  clock,
  logger,
}: CompanionDependencies): Promise<BatchConsumer> {
  await ensureResultBucket(events, config.retention.eventDays);
  return await startIngestConsumer(events, {
    kind: 'testruns',
    schema: publishedTestRun,
    ownerOf: (name) => bots.ownerOf(name),
    apply: applyTestRuns(database, createResultFiles(events), clock),
    maxBatch,
    logger,
  });
}
