// Remembers since when detection of a call runs. A line that loses its media closes detection in its place.

import { type AmdEvent, closingAmdEvents } from './amd-event.ts';

export class LineDetection {
  #startedAt: Date | undefined;
  #round = 1;

  /** A round of detection begins; the first is 1. */
  start(at: Date, round = 1): void {
    this.#startedAt = at;
    this.#round = round;
  }

  /** Detection has closed itself. */
  stopped(): void {
    this.#startedAt = undefined;
  }

  /** @returns the events that close detection, none if it does not run */
  lose(at: Date): readonly AmdEvent[] {
    const startedAt = this.#startedAt;
    this.#startedAt = undefined;
    if (startedAt === undefined) return [];
    return closingAmdEvents('media-lost', at.getTime() - startedAt.getTime(), this.#round);
  }
}
