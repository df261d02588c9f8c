// Telephone events (RFC 4733): packets that repeat "key, so long by now" become one press with its duration, whatever is
// lost, repeated or out of order on the way.
//
//   |     event     |E|R| volume    |          duration             |

import { timestampDistance } from './rtp-packet.ts';

const digits = '0123456789*#ABCD';
const samplesPerMs = 8;
/** Ten frames without an update: all copies of the end packet were lost (RFC 4733 2.5.1.4 repeats it twice more). */
const lostEndFrames = 10;
/** A copy of a press that was told comes within this time, or is another press: 5 s. */
const repeatedWithinSamples = 40_000;
/** A press this long is split into segments, each with its own timestamp (RFC 4733 2.5.1.3). */
const segmentSamples = 0xff00;
/** No person presses faster than 25 keys a second; a flood of forged events must not become a flood of messages. */
const maxBurstPresses = 10;
const framesPerPress = 2;

export class DtmfReceiver {
  readonly #onPress: (digit: string, durationMs: number) => void;
  #pressed = false;
  #event = 0;
  #timestamp = 0;
  #duration = 0;
  #earlierSegments = 0;
  #framesSinceUpdate = 0;
  /** Of the last press that was told. */
  #toldTimestamp: number | undefined;
  #allowance = maxBurstPresses;
  #frames = 0;

  constructor(onPress: (digit: string, durationMs: number) => void) {
    this.#onPress = onPress;
  }

  receive(packet: Uint8Array, start: number, end: number, timestamp: number): void {
    if (end - start < 4) return;
    const event = packet[start] as number;
    // 16 is the hook flash, the rest are fax, modem and trunk signals: no keys.
    if (event >= digits.length) return;
    const isEnd = ((packet[start + 1] as number) & 0x80) !== 0;
    const duration = ((packet[start + 2] as number) << 8) | (packet[start + 3] as number);
    if (this.#isStale(timestamp)) return;
    if (!this.#pressed || timestamp !== this.#timestamp || event !== this.#event) {
      this.#begin(event, timestamp);
    }
    this.#framesSinceUpdate = 0;
    if (duration > this.#duration) this.#duration = duration;
    if (isEnd) this.#tell();
  }

  /** Every 20 ms. */
  tick(): void {
    this.#frames += 1;
    if (this.#frames % framesPerPress === 0 && this.#allowance < maxBurstPresses) {
      this.#allowance += 1;
    }
    if (!this.#pressed) return;
    this.#framesSinceUpdate += 1;
    if (this.#framesSinceUpdate >= lostEndFrames) this.#tell();
  }

  /** Another sender: its timestamps have nothing to do with the former's. */
  reset(): void {
    if (this.#pressed) this.#tell();
    this.#toldTimestamp = undefined;
  }

  #isStale(timestamp: number): boolean {
    if (this.#pressed && timestampDistance(timestamp, this.#timestamp) < 0) return true;
    if (this.#toldTimestamp === undefined) return false;
    const since = timestampDistance(timestamp, this.#toldTimestamp);
    return since <= 0 && since > -repeatedWithinSamples;
  }

  #begin(event: number, timestamp: number): void {
    const continues =
      this.#pressed &&
      event === this.#event &&
      this.#duration >= segmentSamples &&
      timestampDistance(timestamp, this.#timestamp) <= 0xffff;
    if (continues) {
      this.#earlierSegments += this.#duration;
    } else {
      // The end of the former press was lost.
      if (this.#pressed) this.#tell();
      this.#earlierSegments = 0;
    }
    this.#pressed = true;
    this.#event = event;
    this.#timestamp = timestamp;
    this.#duration = 0;
  }

  #tell(): void {
    this.#pressed = false;
    this.#toldTimestamp = this.#timestamp;
    if (this.#allowance <= 0) return;
    this.#allowance -= 1;
    const samples = this.#earlierSegments + this.#duration;
    this.#onPress(digits.charAt(this.#event), Math.round(samples / samplesPerMs));
  }
}
