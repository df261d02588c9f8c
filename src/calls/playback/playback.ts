// Sounds that a call plays: what is asked of the media worker, what it tells of each, and what of that is known of the call.

import type { CallEvent } from '../contract/call-event.ts';
import type { PlaybackEndReason, PlaybackSource } from '../contract/call-words.ts';
import type { VoicemailLeft } from './playback-contract.ts';

/** Ready to be played: µ-law, 8 kHz. */
export type Sound = {
  /** `sound:<name>`, or the URL without what may be a secret in it. */
  readonly name: string;
  /** Its loader puts it into memory that threads share, so that no media worker has a copy of its own. */
  readonly mulaw: Uint8Array;
  readonly durationMs: number;
};

export type Playback = {
  /** Of the command, or of the plan. */
  readonly playbackId: string;
  readonly source: PlaybackSource;
  readonly sound: Sound;
  /** From the beginning again, until it is stopped or something else is played. */
  readonly loop?: boolean;
  /** Of a message that is left: it began before, and starts anew. 1, 2, … */
  readonly restart?: number;
  /** Of a message that is left: a beep was heard before it. */
  readonly afterBeep?: boolean;
};

type PlaybackIdentity = {
  readonly playbackId: string;
  readonly source: PlaybackSource;
  readonly sound: string;
};

/** By the RTP clock. Each sound that was asked for finishes once, and starts before if any of it went out. */
export type PlaybackReport =
  | (PlaybackIdentity & {
      readonly kind: 'started';
      readonly restart?: number;
      readonly afterBeep?: boolean;
    })
  | (PlaybackIdentity & {
      readonly kind: 'finished';
      readonly reason: PlaybackEndReason;
      /** What went out of it. */
      readonly playedMs: number;
    });

/** Of a call, so far. */
export type PlaybackProgress = {
  /** Started, and not known to have finished. */
  readonly playing: readonly (PlaybackIdentity & { readonly kind: 'started' })[];
  readonly playedMs?: number;
  readonly voicemail?: VoicemailLeft;
};

export const nothingPlayed: PlaybackProgress = { playing: [] };

/** One event later. */
export function afterPlayback(progress: PlaybackProgress, event: CallEvent): PlaybackProgress {
  if (event.type === 'playback-started') {
    const { playbackId, source, sound, afterBeep = false } = event.data;
    const playing = [...progress.playing, { kind: 'started' as const, playbackId, source, sound }];
    if (source !== 'voicemail') return { ...progress, playing };
    const voicemail = { startedAt: event.time, durationMs: 0, complete: false, afterBeep };
    return { ...progress, playing, voicemail };
  }
  if (event.type !== 'playback-finished') return progress;
  const { playbackId, source, playedMs, reason } = event.data;
  const { voicemail } = progress;
  return {
    playing: progress.playing.filter((one) => one.playbackId !== playbackId),
    playedMs: (progress.playedMs ?? 0) + playedMs,
    ...(voicemail === undefined
      ? {}
      : {
          voicemail:
            source === 'voicemail'
              ? { ...voicemail, durationMs: playedMs, complete: reason === 'done' }
              : voicemail,
        }),
  };
}

/** What the end of a call says of it. */
export function playedMembers({ playedMs, voicemail }: PlaybackProgress): {
  readonly playedMs?: number;
  readonly voicemail?: VoicemailLeft;
} {
  return {
    ...(playedMs === undefined ? {} : { playedMs }),
    ...(voicemail === undefined ? {} : { voicemail }),
  };
}
