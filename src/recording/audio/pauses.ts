// When a recording is paused: while a command holds it, and while the far end presses keys. It's
// paused as long as either does. Positions count samples from the beginning of the recording.

import type { RecordingPause } from '../../calls/recording/recording.ts';
import { samplesPerMs } from '../recording-messages.ts';

/**
 * In-band tones begin before a gateway recognises them and sends the first packet of the key.
 */
const beforeKeySamples = 200 * samplesPerMs;
/** Someone who types a card's number pauses between its groups. */
const afterKeySamples = 5_000 * samplesPerMs;
/**
 * Each pause is written to the spool and to the metadata. After this many, a recording stays
 * paused, because an unwanted pause does less harm than an unwanted recording.
 */
const maxPauses = 10_000;

export type Pause = {
  /** Moves to an earlier position if a key turns out to have begun earlier. */
  from: number;
  /** Undefined while the pause lasts. */
  until: number | undefined;
  readonly by: RecordingPause;
};

export type PauseListener = {
  onPaused(pause: Pause): void;
  onResumed(pause: Pause): void;
};

export class Pauses {
  readonly #listener: PauseListener;
  readonly #pauseOnKeys: boolean;
  #heldByCommand = false;
  #isKeyPressed = false;
  /** Where the pause for the last key ends. Undefined if no key holds the recording. */
  #keysUntil: number | undefined;
  #current: Pause | undefined;
  #count = 0;
  #endOfLast = 0;
  #pausedSamples = 0;

  constructor(pauseOnKeys: boolean, listener: PauseListener) {
    this.#pauseOnKeys = pauseOnKeys;
    this.#listener = listener;
  }

  command(isPaused: boolean, now: number): void {
    this.#heldByCommand = isPaused;
    if (isPaused) this.#pause(now, 'command');
    else this.#resumeIfFree(now);
  }

  /** `earliest`: what comes before it has been written, so that a pause can't include it. */
  beginKey(agoSamples: number, now: number, earliest: number): void {
    if (!this.#pauseOnKeys) return;
    this.#isKeyPressed = true;
    this.#keysUntil = now + afterKeySamples;
    this.#pause(Math.max(earliest, now - agoSamples - beforeKeySamples), 'keys');
  }

  endKey(now: number): void {
    if (!this.#pauseOnKeys) return;
    this.#isKeyPressed = false;
    this.#keysUntil = now + afterKeySamples;
  }

  tick(now: number): void {
    if (this.#keysUntil === undefined || this.#isKeyPressed || now < this.#keysUntil) return;
    this.#keysUntil = undefined;
    this.#resumeIfFree(now);
  }

  /** Returns how much of the recording up to now is paused. */
  pausedSamples(now: number): number {
    const current = this.#current;
    return this.#pausedSamples + (current === undefined ? 0 : now - current.from);
  }

  #pause(from: number, by: RecordingPause): void {
    const start = Math.max(from, this.#endOfLast);
    if (this.#current !== undefined) {
      if (start < this.#current.from) this.#current.from = start;
      return;
    }
    this.#count += 1;
    this.#current = { from: start, until: undefined, by };
    this.#listener.onPaused(this.#current);
  }

  #resumeIfFree(now: number): void {
    const current = this.#current;
    if (current === undefined || this.#heldByCommand || this.#keysUntil !== undefined) return;
    if (this.#count >= maxPauses) return;
    this.#current = undefined;
    current.until = now;
    this.#endOfLast = now;
    this.#pausedSamples += now - current.from;
    this.#listener.onResumed(current);
  }
}
