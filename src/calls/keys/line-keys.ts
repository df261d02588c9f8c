// Presses keys by SIP INFO, for carriers that want this. The keys are pressed one after the other:
// each waits until the far end has taken the key before it and that key is up again. The reports
// are the same as those of the media worker for keys that it sends (`src/media/rtp/key-sender.ts`).

import { setTimeout as pause } from 'node:timers/promises';
import { inBackground } from '../../lib/in-background.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Keys, KeysSent } from './keys.ts';

const pauseCharacter = 'w';
const pauseMs = 500;
/** From the end of a key to the next key. No exchange needs more than 70 ms (Q.24). */
const betweenKeysMs = 80;
/** The largest number of commands that wait in one call. */
const maxWaiting = 100;

type Waiting = Keys & {
  /** The number of signs that are done. */
  done: number;
  /** Whether a key was sent and not answered yet. */
  isInFlight: boolean;
};

export class LineKeys {
  readonly #press: (digit: string, durationMs: number) => Promise<boolean>;
  readonly #report: (report: KeysSent) => void;
  readonly #logger: Logger;
  readonly #waiting: Waiting[] = [];
  #isPressing = false;

  /** `press` sends a key and returns whether the far end has taken it. */
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

  /** Drops all waiting keys and reports them. A key that is on its way counts as pressed. */
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
      // After a defect some keys still wait.
      this.stop();
    }
  }

  async #pressNextOf(keys: Waiting): Promise<void> {
    const isTaken = await this.#pressNext(keys);
    // The keys were stopped meanwhile, and `stop` has reported them.
    if (keys !== this.#waiting[0]) return;
    if (isTaken) keys.done += 1;
    if (isTaken && keys.done < keys.digits.length) return;
    this.#waiting.shift();
    this.#reportEnd(keys);
  }

  async #pressNext(keys: Waiting): Promise<boolean> {
    const character = keys.digits.charAt(keys.done);
    if (character === pauseCharacter) return await pause(pauseMs, true, { ref: false });
    keys.isInFlight = true;
    const { durationMs } = keys;
    const isUp = pause(durationMs + betweenKeysMs, undefined, { ref: false });
    const isTaken = await this.#press(character, durationMs);
    keys.isInFlight = false;
    if (isTaken) await isUp;
    return isTaken;
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
