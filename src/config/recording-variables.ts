// The variables of recordings: where they are stored, and for how long.

import { z } from 'zod';
import { fileFor } from './secret-variables.ts';

/** A bucket's name according to S3, and the part of the path before the names of recordings. */
const bucketAddress = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/([A-Za-z0-9._/-]*))?$/;

export type BucketAddress = { readonly bucket: string; readonly prefix: string };

/** @returns undefined if the text isn't `s3://bucket/prefix` */
export function bucketOf(text: string): BucketAddress | undefined {
  const [, bucket, prefix = ''] = bucketAddress.exec(text) ?? [];
  if (bucket === undefined) return undefined;
  return { bucket, prefix: prefix.replaceAll(/^\/+|\/+$/g, '') };
}

export const recordingVariables = {
  RECORDING_STORE: z
    .string()
    .refine(
      (text) => !/^[a-z0-9]+:\/\//i.test(text) || bucketOf(text) !== undefined,
      'must be a folder, or s3://bucket/prefix',
    )
    .optional()
    .describe(
      'Where recordings are stored: a folder, or `s3://bucket/prefix`. Default: DATA_DIR/recordings.',
    ),
  S3_ENDPOINT: z
    .url({ protocol: /^https?$/, error: 'must be a URL, e.g. https://s3.example.com' })
    .optional()
    .describe(
      'URL of the S3 server, whose paths begin with the bucket. Default: AWS, in S3_REGION.',
    ),
  S3_REGION: z
    .string()
    .regex(/^[a-z0-9-]{1,64}$/, 'must be a region, e.g. eu-central-1')
    .default('us-east-1')
    .describe('Region of the bucket.'),
  AWS_ACCESS_KEY_ID: z.string().optional().describe('Access key of the bucket.'),
  AWS_ACCESS_KEY_ID_FILE: fileFor('AWS_ACCESS_KEY_ID'),
  AWS_SECRET_ACCESS_KEY: z.string().optional().describe('Secret of AWS_ACCESS_KEY_ID.'),
  AWS_SECRET_ACCESS_KEY_FILE: fileFor('AWS_SECRET_ACCESS_KEY'),
  AWS_SESSION_TOKEN: z
    .string()
    .optional()
    .describe('Session token, if the access key is a temporary one.'),
  AWS_SESSION_TOKEN_FILE: fileFor('AWS_SESSION_TOKEN'),
  RECORDING_SPOOL: z
    .string()
    .optional()
    .describe(
      'Folder to which recordings are written during the call. If nodes share it, another node can finish the recordings of a lost one. Default: DATA_DIR/recording-spool.',
    ),
  RECORDING_RETENTION_DAYS: z.coerce
    .number()
    .min(0.01)
    .max(36_500)
    .default(30)
    .describe(
      'How long recordings are kept after the call’s end, unless the request or the bot says otherwise.',
    ),
};
