// Finds the index of a received packet, and recognises replayed packets (RFC 3711, sections 3.3.1
// and 3.3.2). The index is the 16-bit sequence number, preceded by a rollover counter. The counter
// is never sent, and says how often the sequence number has wrapped.

import { sequences } from './srtp-cipher.ts';

/** Packets further back than this count as replayed. RFC 3711 requires at least 64. */
const windowPackets = 128;
const halfCircle = 0x8000;
/** The index has 48 bits. A call would reach the last one after 178,000 years. */
const indexes = 2 ** 48;

export class PacketOrder {
  /** The highest index so far. -1 before the first packet. */
  #highest = -1;
  /** Bit n of word w is set if the packet 32w + n before the highest has arrived. */
  readonly #seen = new Uint32Array(windowPackets / 32);
  /** False until a packet of the current key was authentic, which proves the counter. */
  #isSettled = false;

  /**
   * Guesses the index of a packet from its sequence number: the one nearest to the highest.
   * @returns undefined if the packet would be older than the stream
   */
  indexOf(sequence: number): number | undefined {
    if (this.#highest < 0) return sequence;
    const highestSequence = this.#highest % sequences;
    let index = this.#highest - highestSequence + sequence;
    if (sequence - highestSequence > halfCircle) index -= sequences;
    else if (highestSequence - sequence > halfCircle) index += sequences;
    return index < 0 || index >= indexes ? undefined : index;
  }

  /**
   * The packet's index if our guess of the counter is wrong. That's possible until the first packet
   * of a key, for two reasons: packets before a new sender's first wrap may be lost, e.g. those
   * that arrive before its answer; and some far ends begin again from zero when they change their
   * key.
   * @returns undefined if only the index that we guess is possible
   */
  otherIndexOf(sequence: number): number | undefined {
    if (this.#isSettled) return undefined;
    if (this.#highest >= 0) return sequence;
    return sequence < halfCircle ? sequences + sequence : undefined;
  }

  isReplayed(index: number): boolean {
    const age = this.#highest - index;
    if (age < 0) return false;
    if (age >= windowPackets) return true;
    return ((this.#seen[age >>> 5] as number) & (1 << (age & 31))) !== 0;
  }

  /** Records an authenticated packet. */
  accept(index: number): void {
    this.#isSettled = true;
    const ahead = this.#highest < 0 ? windowPackets : index - this.#highest;
    if (ahead > 0) {
      this.#shift(ahead);
      this.#highest = index;
    }
    const age = this.#highest - index;
    if (age < windowPackets) {
      this.#seen[age >>> 5] = (this.#seen[age >>> 5] as number) | (1 << (age & 31));
    }
  }

  /** The order under another key: with the same index, but nothing counts as replayed. */
  underAnotherKey(): PacketOrder {
    const copy = new PacketOrder();
    copy.#highest = this.#highest;
    return copy;
  }

  #shift(by: number): void {
    if (by >= windowPackets) {
      this.#seen.fill(0);
      return;
    }
    const words = by >>> 5;
    const bits = by & 31;
    for (let word = this.#seen.length - 1; word >= 0; word -= 1) {
      const high = this.#seen[word - words] ?? 0;
      const low = this.#seen[word - words - 1] ?? 0;
      this.#seen[word] = bits === 0 ? high : (high << bits) | (low >>> (32 - bits));
    }
  }
}
