// The tag that authenticates a packet: HMAC-SHA1 over the packet and its counter, truncated (RFC
// 3711, section 4.2.1). HMAC (RFC 2104) consists of two hashes, each over a block of the key and
// then over data. We call `hash` for each, which takes a third of the time of `createHmac` or of
// copies of two prepared hashes, because those create objects for each packet.

import { hash, timingSafeEqual } from 'node:crypto';

const blockBytes = 64;
const hashBytes = 20;
const counterBytes = 4;
/** No UDP datagram is longer. */
const maxPacketBytes = 65_535;

/** Shared by all tags of a thread, because a tag is written and compared without a pause. */
const scratch = new Uint8Array(blockBytes + maxPacketBytes + counterBytes);

export class PacketTag {
  readonly bytes: number;
  readonly #innerKey: Uint8Array;
  /** The block of the outer hash, followed by the result of the inner one. */
  readonly #outer = new Uint8Array(blockBytes + hashBytes);
  /** Two tags that are being compared. */
  readonly #expected: Uint8Array;
  readonly #received: Uint8Array;

  /** @param key at most 64 bytes */
  constructor(key: Uint8Array, bytes: number) {
    this.bytes = bytes;
    this.#innerKey = keyBlock(key, 0x36);
    this.#outer.set(keyBlock(key, 0x5c));
    this.#expected = new Uint8Array(bytes);
    this.#received = new Uint8Array(bytes);
  }

  /** Writes the tag of `packet[0, end)` at `end`. `rollover` is undefined for RTCP. */
  write(packet: Uint8Array, end: number, rollover: number | undefined): void {
    put(this.#of(packet, end, rollover), packet, end, this.bytes);
  }

  /** Compares in constant time with the tag at `end`. */
  matches(packet: Uint8Array, end: number, rollover: number | undefined): boolean {
    put(this.#of(packet, end, rollover), this.#expected, 0, this.bytes);
    for (let at = 0; at < this.bytes; at += 1) this.#received[at] = packet[end + at] as number;
    return timingSafeEqual(this.#expected, this.#received);
  }

  /** Returns the whole hash, one character per byte. */
  #of(packet: Uint8Array, end: number, rollover: number | undefined): string {
    scratch.set(this.#innerKey);
    scratch.set(end === packet.length ? packet : packet.subarray(0, end), blockBytes);
    let length = blockBytes + end;
    if (rollover !== undefined) {
      scratch[length] = rollover >>> 24;
      scratch[length + 1] = rollover >>> 16;
      scratch[length + 2] = rollover >>> 8;
      scratch[length + 3] = rollover;
      length += counterBytes;
    }
    put(sha1(scratch.subarray(0, length)), this.#outer, blockBytes, hashBytes);
    return sha1(this.#outer);
  }
}

/** A short string costs less than a Buffer, whose memory V8 allocates elsewhere. */
function sha1(bytes: Uint8Array): string {
  return hash('sha1', bytes, 'binary');
}

function put(text: string, into: Uint8Array, at: number, bytes: number): void {
  for (let index = 0; index < bytes; index += 1) into[at + index] = text.charCodeAt(index);
}

/** The key, padded to a block, with each byte XORed. */
function keyBlock(key: Uint8Array, pad: number): Uint8Array {
  return Uint8Array.from({ length: blockBytes }, (_, index) => (key[index] ?? 0) ^ pad);
}
