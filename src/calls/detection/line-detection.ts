// Since when detection of a call runs: a line that loses its media closes it in detection's place.

import { type AmdEvent, closingAmdEvents } from './amd-event.ts';

export class LineDetection {
  #startedAt: Date | undefined;
  #round = 1;

  /** A round begins; the first is 1. */
  start(at: Date, round = 1): void {
    this.#startedAt = at;
    this.#round = round;
  }

  /** It has closed itself. */
  stopped(): void {
    this.#startedAt = undefined;
  }

  /** What closes it; nothing, where it does not run. */
  lose(at: Date): readonly AmdEvent[] {
    const startedAt = this.#startedAt;
    this.#startedAt = undefined;
    if (startedAt === undefined) return [];
    return closingAmdEvents('media-lost', at.getTime() - startedAt.getTime(), this.#round);
  }
}
