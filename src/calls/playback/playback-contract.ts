// The contract for playback: the `play` and `stop` commands, each sound's events, and the summary
// of a left message in the terminal event.

import { z } from 'zod';
import {
  type PlaybackEndReason,
  type PlaybackSource,
  playbackEndReasons,
  playbackSources,
} from '../contract/call-words.ts';
import { callCommand, callEvent, seconds } from '../contract/definitions.ts';
import { durationMs, type Immutable, instant, wordOf } from '../contract/schema.ts';
import { soundReference } from './sound-reference.ts';

export const playCommand = callCommand('play', {
  sound: soundReference,
  loop: z
    .boolean()
    .exactOptional()
    .describe('repeats the sound until it is stopped or something else is played'),
}).describe('plays a sound, after what is already queued');

export const stopCommand = callCommand('stop', {}).describe(
  'stops the current sound and drops all queued sounds, bot audio and keys',
);

/** A message that a plan left, at least in part. */
export const voicemailLeft = z.object({
  startedAt: instant.describe('when the message last started'),
  durationMs: durationMs.describe('how much of the message was sent since then'),
  complete: z.boolean().describe('whether the message was sent from its first sample to its last'),
  afterBeep: z.boolean().describe('whether a beep was heard in time'),
});
export type VoicemailLeft = Immutable<z.infer<typeof voicemailLeft>>;

const playbackIdentity = {
  playbackId: z.string().describe('id of this playback, assigned by the command or the plan'),
  commandId: z
    .string()
    .exactOptional()
    .describe('same as `playbackId` if a command plays the sound'),
  sound: z.string().describe('`sound:<name>`, or a URL without its query'),
  source: wordOf<PlaybackSource>(playbackSources),
};

const startLine = ({ sound, restart }: { sound: string; restart?: number }): string =>
  restart === undefined ? sound : `${sound}, again (${restart})`;

const example = {
  playbackId: 'play-8f2c',
  sound: 'sound:autumn-message',
  source: 'voicemail',
} as const;

export const playbackEvents = {
  'playback-started': callEvent({
    when: 'the first packet of a sound was sent',
    data: {
      ...playbackIdentity,
      restart: z
        .number()
        .int()
        .min(1)
        .exactOptional()
        .describe('1, 2, … each time a message starts again'),
      afterBeep: z
        .boolean()
        .exactOptional()
        .describe('only for a message: whether a beep was heard before it'),
    },
    line: startLine,
    watched: (data) => `plays ${startLine(data)}`,
    example: { ...example, afterBeep: true },
  }),
  'playback-finished': callEvent({
    when: 'the last packet of a sound was sent, or the sound was stopped',
    data: {
      ...playbackIdentity,
      reason: wordOf<PlaybackEndReason>(playbackEndReasons),
      playedMs: durationMs.describe('how much of the sound was sent'),
    },
    line: ({ sound, reason, playedMs }) => `${sound}, ${reason} after ${seconds(playedMs)}`,
    watched: ({ sound, reason, playedMs }) =>
      `has played ${seconds(playedMs)} of ${sound}: ${reason}`,
    example: { ...example, reason: 'done', playedMs: 6_200 },
  }),
};
