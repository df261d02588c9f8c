// Remembers when the detection of a call began. A line that loses its media closes detection in
// place of the media.

import { type AmdEvent, closingAmdEvents } from './amd-event.ts';

export class LineDetection {
  #startedAt: Date | undefined;
  #round = 1;

  /** Notes that a round of detection begins. The first round is 1. */
  start(at: Date, round = 1): void {
    this.#startedAt = at;
    this.#round = round;
  }

  /** Notes that detection has closed itself. */
  stopped(): void {
    this.#startedAt = undefined;
  }

  /**
   * Notes that the media was lost.
   *
   * @returns the events that close detection, empty if it does not run
   */
  lose(at: Date): readonly AmdEvent[] {
    const startedAt = this.#startedAt;
    this.#startedAt = undefined;
    if (startedAt === undefined) return [];
    return closingAmdEvents('media-lost', at.getTime() - startedAt.getTime(), this.#round);
  }
}
