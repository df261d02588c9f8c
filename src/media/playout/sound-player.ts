// What a call sends: sounds and what its bot says, in the order in which they were asked for. A sound stands at a position of the
// bot's queue, as a mark does: what was queued before it goes out first, and what comes later waits for its end. On hold sounds
// wait, since they would not be heard; a bot's audio passes.

import type { Playback, PlaybackReport } from '../../calls/playback/playback.ts';
import { encodeMulaw, silenceByte } from '../g711.ts';
import { frameSamples } from '../rtp/jitter-buffer.ts';
import type { PlayoutQueue } from './playout-queue.ts';

/** Of one call; a dialogue of prompts and pauses is a dozen. */
const maxWaiting = 100;
const samplesPerMs = 8;
const sampleRateHz = 8_000;
/** Both tones together repeat after 1/40 s. */
const periodSamples = sampleRateHz / 40;
const onSamples = 2 * sampleRateHz;
const cycleSamples = 6 * sampleRateHz;
/** -19 dBm0 each, as exchanges send it; a sine of full scale is 3 dBm0. */
const amplitude = 32_124 * 10 ** ((-19 - 3.17) / 20);

const ringbackPeriod = Uint8Array.from({ length: periodSamples }, (_, index) => {
  const turn = (2 * Math.PI * index) / sampleRateHz;
  return encodeMulaw(Math.round(amplitude * (Math.sin(440 * turn) + Math.sin(480 * turn))));
});

type Waiting = {
  readonly playback: Playback;
  /** In the bot's queue: what comes before. */
  position: number;
  /** Of its sound, where it goes on. */
  at: number;
  bytesPlayed: number;
};

/** What passes on hold goes nowhere. */
const unheard = new Uint8Array(frameSamples);

export class SoundPlayer {
  readonly #report: (report: PlaybackReport) => void;
  readonly #waiting: Waiting[] = [];
  #queue: PlayoutQueue | undefined;
  #ringback: Ringback | undefined;

  constructor(report: (report: PlaybackReport) => void) {
    this.#report = report;
  }

  /** A sound plays, or is about to. */
  get isPlaying(): boolean {
    return this.#waiting.length > 0;
  }

  /** Neither a sound nor a bot nor ringback has the line: there is nothing to be sent. */
  get isUnused(): boolean {
    const hasSound = this.#queue !== undefined || this.#waiting.length > 0;
    return !hasSound && this.#ringback === undefined;
  }

  /** Ringback is heard wherever there would be silence. */
  ring(isRinging: boolean): void {
    this.#ringback = isRinging ? new Ringback() : undefined;
  }

  /** What the bot says; undefined: there is none any more. What another bot has said is gone: nothing of it comes first. */
  attach(queue: PlayoutQueue | undefined): void {
    this.#queue = queue;
    for (const waiting of this.#waiting) waiting.position = queue?.bytesWritten ?? 0;
  }

  play(playback: Playback): void {
    for (const looped of this.#waiting.filter((one) => one.playback.loop === true)) {
      this.#finish(looped, 'stopped');
    }
    const position = this.#queue?.bytesWritten ?? 0;
    const waiting: Waiting = { playback, position, at: 0, bytesPlayed: 0 };
    const isPlayable = playback.sound.mulaw.length > 0 && this.#waiting.length < maxWaiting;
    this.#waiting.push(waiting);
    if (!isPlayable) this.#finish(waiting, 'failed');
  }

  /** Sounds, and nothing of the bot's. */
  stop(): void {
    for (const waiting of [...this.#waiting]) this.#finish(waiting, 'stopped');
  }

  /** Nothing of what the bot has said is played any more. */
  clearBot(): void {
    this.#queue?.clear();
  }

  /** The packet that was due was sent, or was not: marks whose audio is over come back. */
  returnMarks(): void {
    this.#queue?.returnMarks();
  }

  /** The next bytes, at most `count`, into `packet` from `start` on; how many there were. */
  read(packet: Uint8Array, start: number, count: number): number {
    const done = this.#readSounds(packet, start, count);
    if (done > 0 || this.#ringback === undefined) return done;
    this.#ringback.read(packet, start, start + count);
    return count;
  }

  #readSounds(packet: Uint8Array, start: number, count: number): number {
    let done = 0;
    while (done < count) {
      const first = this.#waiting[0];
      const before = this.#bytesBefore(first);
      if (first === undefined || before > 0) {
        const wanted = Math.min(before, count - done);
        const read = this.#queue?.read(packet, start + done, wanted) ?? 0;
        done += read;
        if (read < wanted || first === undefined) return done;
      } else done += this.#readSound(first, packet, start + done, count - done);
    }
    return done;
  }

  /** 20 ms in which nothing of ours is heard: the bot's audio passes, sounds wait. */
  pass(): void {
    const wanted = Math.min(this.#bytesBefore(this.#waiting[0]), frameSamples);
    if (wanted > 0) this.#queue?.read(unheard, 0, wanted);
  }

  #bytesBefore(waiting: Waiting | undefined): number {
    if (waiting === undefined) return frameSamples;
    if (this.#queue === undefined) return 0;
    const { bytesPassed, queuedBytes } = this.#queue;
    return Math.max(0, Math.min(waiting.position - bytesPassed, queuedBytes));
  }

  #readSound(waiting: Waiting, packet: Uint8Array, start: number, wanted: number): number {
    const { playback } = waiting;
    const { mulaw } = playback.sound;
    if (waiting.bytesPlayed === 0) this.#report({ kind: 'started', ...toldOf(playback) });
    const count = Math.min(wanted, mulaw.length - waiting.at);
    for (let index = 0; index < count; index += 1) {
      packet[start + index] = mulaw[waiting.at + index] as number;
    }
    waiting.at += count;
    waiting.bytesPlayed += count;
    if (waiting.at === mulaw.length) {
      if (playback.loop === true) waiting.at = 0;
      else this.#finish(waiting, 'done');
    }
    return count;
  }

  #finish(waiting: Waiting, reason: 'done' | 'stopped' | 'failed'): void {
    this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
    const { playbackId, source, sound } = waiting.playback;
    const playedMs = Math.round(waiting.bytesPlayed / samplesPerMs);
    this.#report({ kind: 'finished', playbackId, source, sound: sound.name, reason, playedMs });
  }
}

function toldOf({ playbackId, source, sound, restart, afterBeep }: Playback) {
  return {
    ...{ playbackId, source, sound: sound.name },
    ...(restart === undefined ? {} : { restart }),
    ...(afterBeep === undefined ? {} : { afterBeep }),
  };
}

/**
 * What a person hears while the phone of a second leg rings without audio of its own: the ringback tone of North America
 * (440 and 480 Hz, 2 s on, 4 s off; ITU-T E.180 Supplement 2), in µ-law.
 */
class Ringback {
  #at = 0;

  /** The next bytes of it. */
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
