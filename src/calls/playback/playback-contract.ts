// Sounds in the contract: the commands that play and stop them, the events that say what becomes of each, and what the end of a
// call says of a message that was left.

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
  loop: z.boolean().exactOptional().describe('until it is stopped or something else is played'),
}).describe('plays a sound, after what is queued already');

export const stopCommand = callCommand('stop', {}).describe(
  'what is queued is not played, of sounds and of the bot; no more keys are pressed',
);

/** A message that a plan left, or began to leave. */
export const voicemailLeft = z.object({
  startedAt: instant.describe('of the last start'),
  durationMs: durationMs.describe('what went out of it since then'),
  complete: z.boolean().describe('from its first sample to its last'),
  afterBeep: z.boolean().describe('false: no beep was heard in time'),
});
export type VoicemailLeft = Immutable<z.infer<typeof voicemailLeft>>;

const played = {
  playbackId: z.string().describe('of the command or of the plan that plays it'),
  commandId: z.string().exactOptional().describe('where a command plays it; as `playbackId`'),
  sound: z.string().describe('`sound:<name>`, or a URL without its query'),
  source: wordOf<PlaybackSource>(playbackSources),
};

const startLine = ({ sound, restart }: { sound: string; restart?: number }): string =>
  restart === undefined ? sound : `${sound}, anew (${restart})`;

const example = {
  playbackId: 'play-8f2c',
  sound: 'sound:autumn-message',
  source: 'voicemail',
} as const;

export const playbackEvents = {
  'playback-started': callEvent({
    when: 'the first packet of a sound was sent',
    data: {
      ...played,
      restart: z
        .number()
        .int()
        .min(1)
        .exactOptional()
        .describe('of a message that starts anew: 1, 2, …'),
      afterBeep: z.boolean().exactOptional().describe('of a message: whether a beep was heard'),
    },
    line: startLine,
    watched: (data) => `plays ${startLine(data)}`,
    example: { ...example, afterBeep: true },
  }),
  'playback-finished': callEvent({
    when: 'the last packet of a sound was sent, or it was stopped',
    data: {
      ...played,
      reason: wordOf<PlaybackEndReason>(playbackEndReasons),
      playedMs: durationMs.describe('what went out of it'),
    },
    line: ({ sound, reason, playedMs }) => `${sound}, ${reason} after ${seconds(playedMs)}`,
    watched: ({ sound, reason, playedMs }) =>
      `has played ${seconds(playedMs)} of ${sound}: ${reason}`,
    example: { ...example, reason: 'done', playedMs: 6_200 },
  }),
};
