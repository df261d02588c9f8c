// Schemas for a batch test run, both as the test runner publishes it and as the specification
// describes it in responses.

import { z } from 'zod';
import { timestamp } from '../../calls/contract/timestamp.ts';
import { plainId as id } from '../../lib/ids.ts';

const plain = /^[^\p{C}]*$/u;
/**
 * Bounded text from a different service, without characters that break a line or the database.
 */
const text = z.string().max(256).regex(plain, 'must not contain control characters');
const count = z.number().min(0);
const decimal = z
  .string()
  .regex(/^-?\d{1,20}(\.\d{1,40})?$/, 'must be a decimal number as text')
  .meta({ examples: ['0.875'] });

export const languageCode = z
  .string()
  .regex(/^[A-Za-z]{2,8}([_-][A-Za-z0-9]{1,8}){0,3}$/, 'must be a language code, e.g. en or en_US');

/**
 * Any text that fits into a path segment. We normalize the text, so that accents match no matter
 * how they were typed.
 */
export const suiteName = z
  .string()
  .normalize()
  .min(1)
  .max(128)
  .regex(plain, 'must not contain control characters');

const commonMembers = {
  _id: id.describe('`tr-<uuid>`: the test run'),
  streamId: id.describe('`st-<uuid>`'),
  testSuiteId: id.describe('`ts-<uuid>`'),
  utterance_count: count,
};

const progress = {
  totalUtterances: count,
  utterance_ran: count,
  percentage: count.max(100),
};

const resultMembers = {
  ...commonMembers,
  isPartialFailure: z.boolean(),
  triggeredBy: text.describe('user identifier'),
  botLanguage: languageCode,
  runType: text.describe('for example `inDevelopment`'),
  startTime: timestamp,
  __v: z.number(),
};

const counters = [
  ...['TP', 'TN', 'FP', 'FN', 'success', 'failure', 'traitSuccess', 'traitFailure'],
  ...['totalEntitiesCount', 'matchedEntitiesCount', 'totalTraitsCount', 'matchedTraitsCount'],
  ...['failedUtteranceCount', 'failedEntitiesCount'],
];

const completedMembers = {
  ...resultMembers,
  status: z.literal('completed'),
  isAvailable: z.boolean(),
  endTime: timestamp,
  f1_score: decimal,
  precision: decimal,
  recall: decimal,
  results: z.object(Object.fromEntries(counters.map((name) => [name, z.number()]))),
};

const fileId = z
  .string()
  .regex(/^[A-Za-z0-9_.-]{1,128}$/, 'must be letters, digits, . _ and -, up to 128 of them')
  .exactOptional();

const running = z.object({
  ...commonMembers,
  status: z.literal('running'),
  result: z.object({ ...resultMembers, status: z.literal('running') }),
  ...progress,
});

const completed = z.object({
  ...commonMembers,
  status: z.literal('completed'),
  result: z.object({
    ...completedMembers,
    fileId,
    fileUrl: z
      .url()
      .exactOptional()
      .describe('link to the result as a CSV; it needs no credentials and is valid for 15 minutes'),
  }),
});

const ids = {
  _id: 'tr-0d9c4c52-9a63-4a7e-a7ab-0f1b5a9f7f10',
  streamId: 'st-6f1d2a4e-3c52-4f0e-8d0b-0a8c7f6d1e21',
  testSuiteId: 'ts-5a8f9f1e-7d5d-4c0c-9a50-2f6a7c1f3b42',
  utterance_count: 40,
};
const runningExample = {
  ...ids,
  status: 'running' as const,
  result: {
    ...ids,
    isPartialFailure: false,
    status: 'running' as const,
    triggeredBy: 'u-4711',
    botLanguage: 'en',
    runType: 'inDevelopment',
    startTime: '2026-11-20T09:30:00.000Z',
    __v: 0,
  },
  totalUtterances: 40,
  utterance_ran: 10,
  percentage: 25,
};
const completedExample = {
  ...ids,
  status: 'completed' as const,
  result: {
    ...runningExample.result,
    status: 'completed' as const,
    isAvailable: true,
    endTime: '2026-11-20T09:31:07.250Z',
    f1_score: '0.93',
    precision: '0.95',
    recall: '0.91',
    fileId: '5f8f9f1e7d5d4c0c',
    results: Object.fromEntries(counters.map((name, index) => [name, 35 - 2 * index])),
  },
};

export const testRun = z.discriminatedUnion('status', [running, completed]).meta({
  id: 'TestRun',
  description: 'A running test run shows its progress, a completed one shows its result.',
  examples: [
    runningExample,
    {
      ...completedExample,
      result: {
        ...completedExample.result,
        fileUrl:
          'https://offhook.example.com/api/public/test-results/acme/st-1b2c3d/tr-0d9c4c52-9a63-4a7e-a7ab-0f1b5a9f7f10?expires=1795167067&signature=9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
      },
    },
  ],
});
export type TestRun = z.infer<typeof testRun>;

const published = { testSuiteName: suiteName };

/** After each change, the test runner publishes the complete run in this format. */
export const publishedTestRun = z
  .discriminatedUnion('status', [
    running.extend(published),
    completed.extend({
      ...published,
      result: z.object({
        ...completedMembers,
        fileId: fileId.describe(
          'object in the bucket `test-results`; with `resultCsv`, or if there is no file, only a name',
        ),
      }),
      resultCsv: z.string().exactOptional().describe('the result file itself, if it is small'),
    }),
  ])
  .meta({
    id: 'PublishedTestRun',
    'x-subject': '<prefix>.ingest.testruns.<botId>',
    description:
      'Publish the complete run whenever it changes. A completed run cannot go back to running. Send the result file in `resultCsv`, or put it into the object store `test-results` under `fileId` before you publish the completed run.',
    examples: [
      { testSuiteName: 'Smoke test', ...runningExample },
      { testSuiteName: 'Smoke test', ...completedExample },
      {
        testSuiteName: 'Smoke test',
        ...completedExample,
        resultCsv: 'utterance,expected,matched\r\nhello,Greeting,Greeting\r\n',
      },
    ],
  });
export type PublishedTestRun = z.infer<typeof publishedTestRun>;
