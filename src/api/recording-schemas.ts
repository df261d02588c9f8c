// The schemas of recordings over HTTP.

import { z } from 'zod';
import { timestamp } from '../calls/contract/timestamp.ts';
import { recordingSummary } from '../calls/recording/recording-contract.ts';

/** AWS accepts links of at most a week, and a link can't be revoked. */
const maxLinkS = 3_600;

export const recordingQuery = z.strictObject({
  link: z
    .string()
    .regex(/^[1-9]\d{0,3}[sm]$/, 'must be a time from 1s to 60m')
    .transform((text) => Number.parseInt(text, 10) * (text.endsWith('m') ? 60 : 1))
    .refine((seconds) => seconds <= maxLinkS, 'must be a time from 1s to 60m')
    .optional()
    .describe(
      'returns an address in the bucket instead, which anybody can read for this time, e.g. `5m`. Only if the store is a bucket',
    ),
});

export const recordingLinkSchema = z.object({ url: z.string(), expiresAt: timestamp }).meta({
  id: 'RecordingLink',
  examples: [
    {
      url: 'https://recordings.s3.eu-central-1.amazonaws.com/acme/2026/11/20/call-0d9c4c52-9a63-4a7e-a7ab-0f1b5a9f7f10.wav?X-Amz-Expires=300&X-Amz-Signature=9c1d',
      expiresAt: '2026-11-20T09:05:00.000Z',
    },
  ],
});

export const recordingRemovalSchema = z
  .object({ callId: z.string(), removed: z.literal(true) })
  .meta({
    id: 'RecordingRemoval',
    examples: [{ callId: 'call-0d9c4c52-9a63-4a7e-a7ab-0f1b5a9f7f10', removed: true }],
  });

/** The recording in the details of a call. */
export const callRecordingSchema = recordingSummary.extend({
  deletedAt: timestamp.optional(),
  deletedBy: z
    .string()
    .optional()
    .describe('the id of the app that deleted it, or `retention` or `person`'),
});
