// The contract for recording: the command that starts, pauses, resumes and stops it, its events,
// and the summary in the last notification and in `GET …/calls/{callId}`.

import { z } from 'zod';
import { callCommand, callEvent, seconds } from '../contract/definitions.ts';
import { durationMs, type Immutable, instant, wordOf } from '../contract/schema.ts';
import {
  type RecordingFailure,
  recordingBegins,
  recordingFailures,
  recordingFills,
  recordingPauses,
  recordingStates,
  recordingStops,
} from './recording.ts';

export const recordActions = ['start', 'pause', 'resume', 'stop'] as const;
export type RecordAction = (typeof recordActions)[number];

export const recordCommand = callCommand('record', {
  action: z
    .enum(recordActions)
    .describe(
      '`start`: with the settings of the request’s `recording`, or else of the bot; a call is recorded at most once. `pause`: digits are `*` until `resume`',
    ),
}).describe('starts, pauses, resumes or stops the recording of the call');

const failure = wordOf<RecordingFailure>(recordingFailures);
const keyName = z
  .string()
  .exactOptional()
  .describe('name of the key for which the recording is encrypted; absent if it is not encrypted');
const commandId = z.string().exactOptional().describe('only if a command caused it');
const offsetMs = durationMs.describe('from the first sample of the recording');
const pausedMs = durationMs.describe('how much of the duration was paused');

export const recordingSummary = z.object({
  state: z
    .enum(recordingStates)
    .describe(
      '`storing`: it is on its way to the store, and `recording-stored` follows. `failed`: `reason` says why; what was recorded before is stored all the same',
    ),
  durationMs: durationMs
    .exactOptional()
    .describe('counts samples, with pauses; absent if the gateway died during the call'),
  pausedMs: pausedMs.exactOptional(),
  key: keyName,
  reason: failure.exactOptional().describe('only if `state` is `failed`'),
  incomplete: z
    .literal(true)
    .exactOptional()
    .describe('present if the gateway died during the call: the last second may be missing'),
});
export type RecordingSummary = Immutable<z.infer<typeof recordingSummary>>;

const example = { durationMs: 12_380, pausedMs: 5_400, key: 'crm-2026' } as const;

export const recordingEvents = {
  'recording-started': callEvent({
    when: 'the recording has begun and its first samples can be written',
    data: {
      from: z.enum(recordingBegins).describe('what began it'),
      startedAt: instant.describe('time of the first sample'),
      announcedAt: instant
        .exactOptional()
        .describe('when the announcement ended; absent without an announcement'),
      fill: z.enum(recordingFills),
      pauseOnKeys: z.boolean(),
      key: keyName,
      commandId,
    },
    line: ({ from, key }) => `from ${from}${key === undefined ? '' : `, for key ${key}`}`,
    watched: ({ announcedAt }) =>
      announcedAt === undefined ? 'is being recorded' : 'is being recorded, as was announced',
    example: {
      from: 'person',
      startedAt: '2026-11-20T09:00:07.960Z',
      announcedAt: '2026-11-20T09:00:07.940Z',
      fill: 'silence',
      pauseOnKeys: true,
      key: 'crm-2026',
    },
  }),
  'recording-paused': callEvent({
    when: 'the recording has paused. Until it resumes, digits are `*`',
    data: {
      by: z.enum(recordingPauses).describe('`keys`: the far end presses keys (`pauseOnKeys`)'),
      offsetMs,
      commandId,
    },
    line: ({ by, offsetMs: at }) => `by ${by}, at ${seconds(at)}`,
    watched: ({ by }) => `recording paused by ${by === 'keys' ? 'keys' : 'a command'}`,
    example: { by: 'keys', offsetMs: 4_200 },
  }),
  'recording-resumed': callEvent({
    when: 'the recording continues after a pause',
    data: { offsetMs, commandId },
    line: ({ offsetMs: at }) => `at ${seconds(at)}`,
    watched: () => 'recording resumed',
    example: { offsetMs: 9_600 },
  }),
  'recording-stopped': callEvent({
    when: 'the recording is over and is on its way to the store',
    data: {
      reason: z.enum(recordingStops),
      durationMs: durationMs.describe('counts samples, with pauses'),
      pausedMs,
      commandId,
    },
    line: ({ reason, durationMs: length }) => `${reason}, ${seconds(length)}`,
    watched: ({ durationMs: length }) => `recording over after ${seconds(length)}`,
    example: { reason: 'call-ended', durationMs: 12_380, pausedMs: 5_400 },
  }),
  'recording-stored': callEvent({
    when: 'the recording is in its store. Follows the end of the call, and is not notified: `recording.notifyurl` receives it',
    data: {
      sha256: z.string().describe('of the stored file, in hexadecimal digits'),
      bytes: z.number().int().min(0).describe('size of the stored file'),
      durationMs: durationMs.describe('counts samples, with pauses unless they were cut out'),
      pausedMs,
      where: z.string().describe('address of the file: `file:` or `s3:` URL'),
      key: keyName,
      incomplete: z
        .literal(true)
        .exactOptional()
        .describe('present if not everything could be recorded, e.g. because a gateway died'),
    },
    line: ({ durationMs: length, bytes }) => `${seconds(length)}, ${bytes} bytes`,
    watched: ({ durationMs: length }) => `recording of ${seconds(length)} stored`,
    example: {
      sha256: '9b1f0c5ad0f5d1d3a6f3b0f6a5c1c0f7b2a0c3f7e1a94c2b8a4e6d7f5c3b2a19',
      bytes: 198_156,
      ...example,
      where: 's3://recordings/acme/2026/11/20/call-0d9c4c52-9a63-4a7e-a7ab-0f1b5a9f7f10.wav.enc',
    },
  }),
  'recording-failed': callEvent({
    when: 'the call can’t be recorded any more, or its recording can’t be stored. May follow the end of the call',
    data: {
      reason: failure,
      detail: z.string().exactOptional().describe('the store’s own words, for people'),
      durationMs: durationMs.describe('how much was recorded before'),
      commandId,
    },
    line: ({ reason }) => reason,
    watched: ({ reason }) => `recording failed: ${reason}`,
    example: { reason: 'disk-full', durationMs: 6_000 },
  }),
};
