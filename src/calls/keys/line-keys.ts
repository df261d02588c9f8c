// Sends key presses by SIP INFO, for carriers that expect that. Each key press waits until the far
// end has accepted the previous one and the previous one's duration has passed. The reports are the
// same as the media worker's for RTP keys (`src/media/rtp/key-sender.ts`).

import { setTimeout as pause } from 'node:timers/promises';
import { inBackground } from '../../lib/in-background.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Keys, KeysSent } from './keys.ts';

const pauseCharacter = 'w';
const pauseMs = 500;
/** Pause between two keys. No exchange needs more than 70 ms (Q.24). */
const betweenKeysMs = 80;
/** Maximum number of commands that may wait in one call. */
const maxWaiting = 100;

type Waiting = Keys & {
  /** Number of characters of `digits` that have been dealt with. */
  done: number;
  /** True while we're waiting for the far end's response to a key press. */
  isInFlight: boolean;
};

export class LineKeys {
  readonly #press: (digit: string, durationMs: number) => Promise<boolean>;
  readonly #report: (report: KeysSent) => void;
  readonly #logger: Logger;
  readonly #waiting: Waiting[] = [];
  #isPressing = false;

  /** @param press sends a key, and returns whether the far end accepted it */
  constructor(
    press: (digit: string, durationMs: number) => Promise<boolean>,
    report: (report: KeysSent) => void,
    logger: Logger,
  ) {
    this.#press = press;
    this.#report = report;
    this.#logger = logger;
  }

  press(keys: Keys): void {
    const waiting = { ...keys, done: 0, isInFlight: false };
    if (this.#waiting.length === maxWaiting) {
      this.#reportEnd(waiting);
      return;
    }
    this.#waiting.push(waiting);
    if (!this.#isPressing) inBackground(this.#pressAll(), this.#logger, 'pressing keys');
  }

  /**
   * Drops all waiting keys and reports the end of each command. A key press that is still in flight
   * counts as sent.
   */
  stop(): void {
    for (const waiting of this.#waiting.splice(0)) this.#reportEnd(waiting);
  }

  async #pressAll(): Promise<void> {
    this.#isPressing = true;
    try {
      for (let first = this.#waiting[0]; first !== undefined; first = this.#waiting[0]) {
        await this.#pressNextOf(first);
      }
    } finally {
      this.#isPressing = false;
      // Normally there's nothing left to report, but if a bug ended the loop, keys may still be
      // waiting.
      this.stop();
    }
  }

  async #pressNextOf(keys: Waiting): Promise<void> {
    const isAccepted = await this.#pressNext(keys);
    // `stop` was called in the meantime and has already reported these keys.
    if (keys !== this.#waiting[0]) return;
    if (isAccepted) keys.done += 1;
    if (isAccepted && keys.done < keys.digits.length) return;
    this.#waiting.shift();
    this.#reportEnd(keys);
  }

  async #pressNext(keys: Waiting): Promise<boolean> {
    const character = keys.digits.charAt(keys.done);
    if (character === pauseCharacter) return await pause(pauseMs, true, { ref: false });
    keys.isInFlight = true;
    const { durationMs } = keys;
    const isUp = pause(durationMs + betweenKeysMs, undefined, { ref: false });
    const isAccepted = await this.#press(character, durationMs);
    keys.isInFlight = false;
    if (isAccepted) await isUp;
    return isAccepted;
  }

  #reportEnd({ commandId, digits, done, isInFlight }: Waiting): void {
    if (commandId === undefined) return;
    const count = isInFlight ? done + 1 : done;
    this.#report({
      commandId,
      digits: digits.slice(0, count),
      complete: count === digits.length,
    });
  }
}
