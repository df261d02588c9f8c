// Remembers when detection started. If the line loses its media, this class closes detection on the
// media's behalf.

import { type AmdEvent, closingAmdEvents } from './amd-event.ts';

export class LineDetection {
  #startedAt: Date | undefined;
  #round = 1;

  /** Records the start of a detection round. The first round is 1. */
  start(at: Date, round = 1): void {
    this.#startedAt = at;
    this.#round = round;
  }

  /** Records that detection has closed itself. */
  stopped(): void {
    this.#startedAt = undefined;
  }

  /**
   * Records that the media was lost.
   *
   * @returns the events that close detection; empty if it is not running
   */
  lose(at: Date): readonly AmdEvent[] {
    const startedAt = this.#startedAt;
    this.#startedAt = undefined;
    if (startedAt === undefined) return [];
    return closingAmdEvents('media-lost', at.getTime() - startedAt.getTime(), this.#round);
  }
}
