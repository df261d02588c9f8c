// Plays sounds and the bot's audio in the order in which they were requested. Like a mark, a sound
// has a position in the bot's queue: audio queued before the sound plays first, and audio queued
// after it waits until the sound ends. During hold, we keep consuming the bot's audio, but sounds
// have to wait because nobody would hear them.

import type { Playback, PlaybackReport } from '../../calls/playback/playback.ts';
import { encodeMulaw, isSilentMulaw, silenceByte } from '../g711.ts';
import { frameSamples } from '../rtp/jitter-buffer.ts';
import type { PlayoutQueue } from './playout-queue.ts';

/**
 * Limits the queued sounds per call. A script of prompts and pauses typically has about a dozen.
 */
const maxQueued = 100;
const samplesPerMs = 8;
const sampleRateHz = 8_000;
/** The sum of the two ringback tones repeats every 1/40 s. */
const periodSamples = sampleRateHz / 40;
const onSamples = 2 * sampleRateHz;
const cycleSamples = 6 * sampleRateHz;
/** Each tone is at -19 dBm0, as in telephone exchanges. A full-scale sine is at 3.17 dBm0. */
const amplitude = 32_124 * 10 ** ((-19 - 3.17) / 20);

const ringbackPeriod = Uint8Array.from({ length: periodSamples }, (_, index) => {
  const turn = (2 * Math.PI * index) / sampleRateHz;
  return encodeMulaw(Math.round(amplitude * (Math.sin(440 * turn) + Math.sin(480 * turn))));
});

type QueuedSound = {
  readonly playback: Playback;
  /** Position in the bot's queue. Audio before this position plays first. */
  position: number;
  /** Offset of the next byte in the sound. */
  offset: number;
  bytesPlayed: number;
};

/** A place for the bot's audio that we discard during hold. */
const discarded = new Uint8Array(frameSamples);

export class SoundPlayer {
  readonly #report: (report: PlaybackReport) => void;
  readonly #queued: QueuedSound[] = [];
  #queue: PlayoutQueue | undefined;
  #ringback: Ringback | undefined;
  /** Undefined once a bot has spoken. */
  #onBotSpoke: (() => void) | undefined;

  /** @param onBotSpoke called once, with the first audio of a bot that isn't silence */
  constructor(report: (report: PlaybackReport) => void, onBotSpoke: () => void = () => undefined) {
    this.#report = report;
    this.#onBotSpoke = onBotSpoke;
  }

  /** True while a sound is playing or queued. */
  get isPlaying(): boolean {
    return this.#queued.length > 0;
  }

  /** True while the announcement before a recording is playing, over which nobody may talk. */
  get isAnnouncing(): boolean {
    const first = this.#queued[0];
    return first !== undefined && isNotice(first) && this.#bytesBefore(first) === 0;
  }

  /** True if there's no sound, bot or ringback to play. */
  get isUnused(): boolean {
    const hasSound = this.#queue !== undefined || this.#queued.length > 0;
    return !hasSound && this.#ringback === undefined;
  }

  /** Starts or stops ringback, which plays whenever there's no other audio. */
  ring(isRinging: boolean): void {
    this.#ringback = isRinging ? new Ringback() : undefined;
  }

  /**
   * Sets the queue of the call's bot, or undefined if the bot is gone. Sounds that are already
   * queued no longer wait for the previous bot's audio.
   */
  attach(queue: PlayoutQueue | undefined): void {
    this.#queue = queue;
    for (const queued of this.#queued) queued.position = queue?.bytesWritten ?? 0;
  }

  /** Queues a sound, and stops any sound that is looping. */
  play(playback: Playback): void {
    for (const looped of this.#queued.filter((one) => one.playback.loop === true)) {
      this.#finish(looped, 'stopped');
    }
    const position = this.#queue?.bytesWritten ?? 0;
    const queued: QueuedSound = { playback, position, offset: 0, bytesPlayed: 0 };
    const isPlayable = playback.sound.mulaw.length > 0 && this.#queued.length < maxQueued;
    this.#queued.push(queued);
    if (!isPlayable) this.#finish(queued, 'failed');
  }

  /**
   * Stops all sounds, except for the announcement before a recording, which ends only with the
   * call. The bot's audio stays queued.
   */
  stop(isEnd: boolean): void {
    for (const queued of [...this.#queued]) {
      if (isEnd || !isNotice(queued)) this.#finish(queued, 'stopped');
    }
  }

  /** Drops the bot's queued audio. */
  clearBot(): void {
    this.#queue?.clear();
  }

  /**
   * Returns the marks whose audio has been played. Call this after you've sent or skipped this
   * tick's packet.
   */
  returnMarks(): void {
    this.#queue?.returnMarks();
  }

  /**
   * Copies up to `count` bytes into `packet`, beginning at `start`.
   * @returns the number of bytes copied
   */
  read(packet: Uint8Array, start: number, count: number): number {
    const done = this.#readSounds(packet, start, count);
    if (done > 0 || this.#ringback === undefined) return done;
    this.#ringback.read(packet, start, start + count);
    return count;
  }

  #readSounds(packet: Uint8Array, start: number, count: number): number {
    let done = 0;
    while (done < count) {
      const first = this.#queued[0];
      const before = this.#bytesBefore(first);
      if (first === undefined || before > 0) {
        const wanted = Math.min(before, count - done);
        const read = this.#readBot(packet, start + done, wanted);
        done += read;
        if (read < wanted || first === undefined) return done;
      } else done += this.#readSound(first, packet, start + done, count - done);
    }
    return done;
  }

  /**
   * Handles 20 ms in which the far end can't hear our audio. The bot's audio is consumed anyway,
   * but sounds keep waiting.
   */
  skipFrame(): void {
    const wanted = Math.min(this.#bytesBefore(this.#queued[0]), frameSamples);
    if (wanted > 0) this.#queue?.read(discarded, 0, wanted);
  }

  #bytesBefore(queued: QueuedSound | undefined): number {
    if (queued === undefined) return frameSamples;
    if (this.#queue === undefined) return 0;
    const { bytesRead, queuedBytes } = this.#queue;
    return Math.max(0, Math.min(queued.position - bytesRead, queuedBytes));
  }

  #readBot(packet: Uint8Array, start: number, wanted: number): number {
    const read = this.#queue?.read(packet, start, wanted) ?? 0;
    // Many bots fill their pauses with silence, which nobody takes for an answer.
    if (this.#onBotSpoke !== undefined && !isSilentMulaw(packet, start, read)) {
      this.#onBotSpoke();
      this.#onBotSpoke = undefined;
    }
    return read;
  }

  #readSound(queued: QueuedSound, packet: Uint8Array, start: number, wanted: number): number {
    const { playback } = queued;
    const { mulaw } = playback.sound;
    if (queued.bytesPlayed === 0) this.#report({ kind: 'started', ...reportedFields(playback) });
    const count = Math.min(wanted, mulaw.length - queued.offset);
    for (let index = 0; index < count; index += 1) {
      packet[start + index] = mulaw[queued.offset + index] as number;
    }
    queued.offset += count;
    queued.bytesPlayed += count;
    if (queued.offset === mulaw.length) {
      if (playback.loop === true) queued.offset = 0;
      else this.#finish(queued, 'done');
    }
    return count;
  }

  #finish(queued: QueuedSound, reason: 'done' | 'stopped' | 'failed'): void {
    this.#queued.splice(this.#queued.indexOf(queued), 1);
    const { playbackId, source, sound } = queued.playback;
    const playedMs = Math.round(queued.bytesPlayed / samplesPerMs);
    this.#report({ kind: 'finished', playbackId, source, sound: sound.name, reason, playedMs });
  }
}

function isNotice({ playback }: QueuedSound): boolean {
  return playback.source === 'recording';
}

function reportedFields({ playbackId, source, sound, restart, afterBeep }: Playback) {
  return {
    ...{ playbackId, source, sound: sound.name, sha256: sound.sha256 },
    ...(restart === undefined ? {} : { restart }),
    ...(afterBeep === undefined ? {} : { afterBeep }),
  };
}

/**
 * The tone that the person hears while the second leg is ringing without early media. It's North
 * American ringback in µ-law (440 and 480 Hz, 2 s on, 4 s off; ITU-T E.180 Supplement 2).
 */
class Ringback {
  #at = 0;

  /** Fills `packet` from `start` to `end` with the next bytes of the tone. */
  read(packet: Uint8Array, start: number, end: number): void {
    for (let index = start; index < end; index += 1) {
      packet[index] =
        this.#at < onSamples
          ? (ringbackPeriod[this.#at % periodSamples] as number)
          : silenceByte.PCMU;
      this.#at = (this.#at + 1) % cycleSamples;
    }
  }
}
