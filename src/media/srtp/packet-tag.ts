// The tag that authenticates a packet: HMAC-SHA1 over the packet and its counter, truncated (RFC
// 3711, section 4.2.1).

import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';

export class PacketTag {
  readonly bytes: number;
  readonly #key: KeyObject;
  readonly #counter = new Uint8Array(4);

  constructor(authenticationKey: Uint8Array, bytes: number) {
    this.#key = createSecretKey(authenticationKey);
    this.bytes = bytes;
  }

  /** Writes the tag of `packet[0, end)` at `end`. `rollover` is undefined for RTCP. */
  write(packet: Uint8Array, end: number, rollover: number | undefined): void {
    packet.set(this.#of(packet, end, rollover), end);
  }

  /** Compares in constant time with the tag at `end`. */
  matches(packet: Uint8Array, end: number, rollover: number | undefined): boolean {
    return timingSafeEqual(this.#of(packet, end, rollover), packet.subarray(end, end + this.bytes));
  }

  #of(packet: Uint8Array, end: number, rollover: number | undefined): Uint8Array {
    const hmac = createHmac('sha1', this.#key).update(packet.subarray(0, end));
    if (rollover !== undefined) {
      this.#counter[0] = rollover >>> 24;
      this.#counter[1] = rollover >>> 16;
      this.#counter[2] = rollover >>> 8;
      this.#counter[3] = rollover;
      hmac.update(this.#counter);
    }
    return hmac.digest().subarray(0, this.bytes);
  }
}
