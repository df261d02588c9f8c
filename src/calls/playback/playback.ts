// Playback of sounds in a call: the media worker's input and reports, and the progress that the
// call keeps.

import type { CallEvent } from '../contract/call-event.ts';
import type { PlaybackEndReason, PlaybackSource } from '../contract/call-words.ts';
import type { VoicemailLeft } from './playback-contract.ts';

/** A sound that is ready to play: µ-law, 8 kHz. */
export type Sound = {
  /** `sound:<name>`, or the URL without any parts that may be secret. */
  readonly name: string;
  /**
   * The samples. The loader puts them in shared memory, so media workers don't have to copy them.
   */
  readonly mulaw: Uint8Array;
  /** SHA-256 of the samples, in hexadecimal digits. The call's record names the sound by it. */
  readonly sha256: string;
  readonly durationMs: number;
};

export type Playback = {
  /** Assigned by the command or the plan. */
  readonly playbackId: string;
  readonly source: PlaybackSource;
  readonly sound: Sound;
  /** Repeats the sound until it is stopped or something else is played. Default: false. */
  readonly loop?: boolean;
  /** Number of the restart (1, 2, …). Only set for a message that has been started again. */
  readonly restart?: number;
  /** True if a beep was heard before the message. Only set for messages. */
  readonly afterBeep?: boolean;
};

type PlaybackIdentity = {
  readonly playbackId: string;
  readonly source: PlaybackSource;
  readonly sound: string;
};

/**
 * A report from the media worker, timed by the RTP clock. Each requested sound reports `finished`
 * exactly once. If any of it was sent, `started` comes first.
 */
export type PlaybackReport =
  | (PlaybackIdentity & {
      readonly kind: 'started';
      readonly sha256: string;
      readonly restart?: number;
      readonly afterBeep?: boolean;
    })
  | (PlaybackIdentity & {
      readonly kind: 'finished';
      readonly reason: PlaybackEndReason;
      /** Duration of the part that was sent. */
      readonly playedMs: number;
    });

/** A call's playback so far. */
export type PlaybackProgress = {
  /** Sounds that have started but haven't finished yet. */
  readonly playing: readonly PlaybackIdentity[];
  readonly playedMs?: number;
  readonly voicemail?: VoicemailLeft;
};

export const nothingPlayed: PlaybackProgress = { playing: [] };

/** Returns the progress after the event. */
export function afterPlayback(progress: PlaybackProgress, event: CallEvent): PlaybackProgress {
  if (event.type === 'playback-started') {
    const { playbackId, source, sound, afterBeep = false } = event.data;
    const playing = [...progress.playing, { playbackId, source, sound }];
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

/** Returns the terminal event's fields that describe playback. */
export function playedMembers({ playedMs, voicemail }: PlaybackProgress): {
  readonly playedMs?: number;
  readonly voicemail?: VoicemailLeft;
} {
  return {
    ...(playedMs === undefined ? {} : { playedMs }),
    ...(voicemail === undefined ? {} : { voicemail }),
  };
}
