// Receives telephone events (RFC 4733). While a key is being pressed, the far end keeps sending
// packets with the key and its duration so far. We report each press once, with its duration, even
// if packets are lost, repeated or reordered.
//
//   |     event     |E|R| volume    |          duration             |

import { timestampDistance } from './rtp-packet.ts';

const digits = '0123456789*#ABCD';
const samplesPerMs = 8;
/**
 * If a press hasn't been updated for this many frames, it has ended, and all copies of its end
 * packet were lost (RFC 4733, section 2.5.1.4, sends three).
 */
const lostEndFrames = 10;
/**
 * A packet that is up to 5 s older than the last reported press is a late copy. If it's even older,
 * the sender has reset its clock, so the packet starts a new press.
 */
const repeatedWithinSamples = 40_000;
/**
 * Senders split longer presses into segments, each with its own timestamp (RFC 4733, section
 * 2.5.1.3).
 */
const segmentSamples = 0xff00;
/**
 * We accept 25 presses a second, in bursts of up to 10. Nobody types faster than that, and the
 * limit keeps forged events from flooding us with messages.
 */
const maxBurstPresses = 10;
const framesPerPress = 2;

export type KeyListener = {
  /** The far end began to press a key `agoMs` ago. */
  onKeyBegin(agoMs: number): void;
  /** The key has been released, or replaced by another. Comes before the report of the press. */
  onKeyEnd(): void;
};

const nobody: KeyListener = { onKeyBegin: () => undefined, onKeyEnd: () => undefined };

export class DtmfReceiver {
  readonly #onPress: (digit: string, durationMs: number) => void;
  readonly #listener: KeyListener;
  #pressed = false;
  #event = 0;
  #timestamp = 0;
  #duration = 0;
  #earlierSegments = 0;
  #framesSinceUpdate = 0;
  /** Timestamp of the last reported press. */
  #reportedTimestamp: number | undefined;
  #allowance = maxBurstPresses;
  #frames = 0;

  /** Unlike `onPress`, the listener is called for every press, however many there are. */
  constructor(onPress: (digit: string, durationMs: number) => void, listener = nobody) {
    this.#onPress = onPress;
    this.#listener = listener;
  }

  receive(packet: Uint8Array, start: number, end: number, timestamp: number): void {
    if (end - start < 4) return;
    const event = packet[start] as number;
    // Event 16 is hook flash. Higher events are fax, modem and trunk signals, not keys.
    if (event >= digits.length) return;
    const isEnd = ((packet[start + 1] as number) & 0x80) !== 0;
    const duration = ((packet[start + 2] as number) << 8) | (packet[start + 3] as number);
    if (this.#isStale(timestamp)) return;
    if (!this.#pressed || timestamp !== this.#timestamp || event !== this.#event) {
      this.#begin(event, timestamp, duration);
    }
    this.#framesSinceUpdate = 0;
    if (duration > this.#duration) this.#duration = duration;
    if (isEnd) this.#reportPress();
  }

  /** Advances the receiver's clock by 20 ms. */
  tick(): void {
    this.#frames += 1;
    if (this.#frames % framesPerPress === 0 && this.#allowance < maxBurstPresses) {
      this.#allowance += 1;
    }
    if (!this.#pressed) return;
    this.#framesSinceUpdate += 1;
    if (this.#framesSinceUpdate >= lostEndFrames) this.#reportPress();
  }

  /** Forgets the previous sender, whose timestamps have nothing to do with the new sender's. */
  reset(): void {
    if (this.#pressed) this.#reportPress();
    this.#reportedTimestamp = undefined;
  }

  #isStale(timestamp: number): boolean {
    if (this.#pressed && timestampDistance(timestamp, this.#timestamp) < 0) return true;
    if (this.#reportedTimestamp === undefined) return false;
    const since = timestampDistance(timestamp, this.#reportedTimestamp);
    return since <= 0 && since > -repeatedWithinSamples;
  }

  #begin(event: number, timestamp: number, duration: number): void {
    const continues =
      this.#pressed &&
      event === this.#event &&
      this.#duration >= segmentSamples &&
      timestampDistance(timestamp, this.#timestamp) <= 0xffff;
    if (continues) {
      this.#earlierSegments += this.#duration;
    } else {
      // We've lost the packets that ended the previous press.
      if (this.#pressed) this.#reportPress();
      this.#earlierSegments = 0;
    }
    this.#pressed = true;
    this.#event = event;
    this.#timestamp = timestamp;
    this.#duration = 0;
    if (!continues) this.#listener.onKeyBegin(duration / samplesPerMs);
  }

  #reportPress(): void {
    this.#pressed = false;
    this.#reportedTimestamp = this.#timestamp;
    this.#listener.onKeyEnd();
    if (this.#allowance <= 0) return;
    this.#allowance -= 1;
    const samples = this.#earlierSegments + this.#duration;
    this.#onPress(digits.charAt(this.#event), Math.round(samples / samplesPerMs));
  }
}
