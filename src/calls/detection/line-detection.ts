// Remembers when detection began. If the line loses its media, it closes detection on behalf of the
// media.

import { type AmdEvent, closingAmdEvents } from './amd-event.ts';

export class LineDetection {
  #startedAt: Date | undefined;
  #round = 1;

  /** Records that a round of detection begins. The first round is 1. */
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
