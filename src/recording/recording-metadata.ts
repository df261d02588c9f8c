// The file `<callId>.json` beside each recording. It stays readable when the recording is
// encrypted, and so it contains no phone number and no name.

import { z } from 'zod';
import { recordingFills, recordingPauses } from '../calls/recording/recording.ts';

/** Why part of a recording is silent although the call wasn't. */
export const gapReasons = ['disk-slow', 'damaged', 'lost'] as const;
export type GapReason = (typeof gapReasons)[number];

/** Milliseconds count from the recording's first sample, on the call's clock. */
const offsetMs = z.number().nonnegative();

export const recordingMetadataSchema = z.object({
  version: z.literal(1),
  callId: z.string(),
  accountId: z.string(),
  botId: z.string(),
  startedAt: z.iso.datetime(),
  endedAt: z.iso.datetime(),
  /** Length of the call's part that the recording covers, pauses included. */
  durationMs: offsetMs,
  pausedMs: offsetMs,
  sampleRateHz: z.literal(8_000),
  encoding: z.literal('mulaw'),
  /** Left: what was heard. Right: what was said to the far end. */
  channels: z.tuple([z.literal('heard'), z.literal('said')]),
  /** silence: pauses are silence in the file. cut: they are left out. */
  fill: z.enum(recordingFills),
  pauses: z.array(
    z.object({
      fromMs: offsetMs,
      untilMs: offsetMs,
      /** Position in the file. Equals `fromMs` unless earlier pauses were cut out. */
      fileMs: offsetMs,
      from: z.iso.datetime(),
      until: z.iso.datetime(),
      by: z.enum(recordingPauses),
    }),
  ),
  gaps: z.array(z.object({ fromMs: offsetMs, untilMs: offsetMs, reason: z.enum(gapReasons) })),
  /** Name of the file, without a folder. */
  file: z.string(),
  /** This and `sha256` describe the file as stored, i.e. the encrypted bytes if it's encrypted. */
  bytes: z.number().int().nonnegative(),
  sha256: z.string(),
  /** Name of the account's key. Omitted if the file isn't encrypted. */
  key: z.string().optional(),
  /** The recording ended before its call did, or the end is unknown. */
  incomplete: z.boolean(),
  /** Why it's incomplete. */
  reason: z.string().optional(),
});

export type RecordingMetadata = z.infer<typeof recordingMetadataSchema>;
