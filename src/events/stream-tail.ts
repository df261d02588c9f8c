// Notices that a stream has lost its last messages: its last sequence is then lower than before.
// NATS acknowledges messages that aren't on the disk yet, so this happens if a machine fails, or if
// a server gets an older copy of its data.

/** At one check every 15 s, this covers four hours. */
const maxSamples = 1_000;
/** By the time of a check, others may already have published again after the loss. */
const marginMs = 5 * 60_000;

type Sample = { readonly sequence: number; readonly at: Date };

export class StreamTail {
  /** The stream's last sequence at each check, oldest first. */
  readonly #samples: Sample[] = [];

  /**
   * Compares the stream's last sequence with earlier ones.
   *
   * @param known the highest sequence that the stream is known to have had
   * @returns since when messages may be lost, or undefined if the stream has lost none
   */
  lostSince(sequence: number, known: number, now = new Date()): Date | undefined {
    const highest = Math.max(known, this.#samples.at(-1)?.sequence ?? 0);
    const kept = this.#samples.findLast((sample) => sample.sequence <= sequence);
    const from = (kept ?? this.#samples[0])?.at ?? now;
    // After a loss, the later samples are no longer true.
    if (sequence < highest) this.#samples.splice(0);
    this.#samples.push({ sequence, at: now });
    if (this.#samples.length > maxSamples) this.#samples.shift();
    return sequence < highest ? new Date(from.getTime() - marginMs) : undefined;
  }
}
