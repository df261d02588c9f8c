// Notices that a stream has lost its last messages: its last sequence is then lower than before.
// NATS acknowledges messages that aren't on the disk yet, so this happens if a machine fails, or if
// a server gets an older copy of its data. On a busy stream, new messages may have taken the place
// of the lost ones before we look, so the publisher's acknowledgements count too.

import type { Acknowledged } from './acknowledged-publishing.ts';

/** At one check every 15 s, this covers four hours. */
const maxSamples = 1_000;
/** By the time of a check, others may already have published again after the loss. */
const marginMs = 5 * 60_000;

type Sample = {
  readonly sequence: number;
  /** No event that is published later is older than this. */
  readonly publishedUntil: Date;
};

export class StreamTail {
  /** The stream's last sequence at each check, oldest first. */
  readonly #samples: Sample[] = [];

  /**
   * Compares the stream's last sequence with earlier ones. After a loss, forget what the stream had
   * acknowledged before.
   *
   * @param acknowledged what the stream had acknowledged before its last sequence was read
   * @param publishedUntil the time of the oldest event that was waiting to be published then
   * @returns since when events may be lost, or undefined if the stream has lost none
   */
  lostSince(
    sequence: number,
    { sequence: known, reused }: Acknowledged,
    publishedUntil: Date,
  ): Date | undefined {
    const highest = Math.max(known, this.#samples.at(-1)?.sequence ?? 0);
    const isLost = sequence < highest || reused !== undefined;
    const whole = reused === undefined ? sequence : Math.min(sequence, reused - 1);
    const kept = this.#samples.findLast((sample) => sample.sequence <= whole);
    const from = (kept ?? this.#samples[0])?.publishedUntil ?? publishedUntil;
    // After a loss, the later samples are no longer true.
    if (isLost) this.#samples.splice(0);
    this.#samples.push({ sequence, publishedUntil });
    if (this.#samples.length > maxSamples) this.#samples.shift();
    return isLost ? new Date(from.getTime() - marginMs) : undefined;
  }
}
