// The key stream of AES in counter mode (RFC 3711, section 4.1.1). A new cipher for each packet
// would take most of SRTP's time, so one cipher encrypts the counter blocks of several packets in
// advance. That's possible because we know their SSRC and their indexes.

import { type Cipher, createCipheriv } from 'node:crypto';

const blockBytes = 16;
/** A frame of 20 ms has 160 bytes. Longer packets get their key stream on their own. */
const blocksAhead = 10;
/** 320 ms of packets. More would hardly be cheaper, and takes 2.5 kB per direction already. */
const packetsAhead = 16;
const bytesPerPacket = blocksAhead * blockBytes;

export class KeyStream {
  readonly #cipher: Cipher;
  readonly #salt: Uint8Array;
  readonly #blocks = new Uint8Array(packetsAhead * bytesPerPacket);
  #ahead: Uint8Array = new Uint8Array(0);
  #aheadSsrc = 0;
  #aheadIndex = -1;

  constructor(keys: { readonly encryption: Uint8Array; readonly salt: Uint8Array }) {
    this.#cipher = createCipheriv('aes-128-ecb', keys.encryption, null);
    this.#cipher.setAutoPadding(false);
    this.#salt = keys.salt;
  }

  /**
   * XORs the key stream into `bytes[start, end)`, which encrypts and decrypts.
   *
   * @param index RTP: rollover counter and sequence number (48 bits); RTCP: the SRTCP index
   */
  apply(bytes: Uint8Array, start: number, end: number, ssrc: number, index: number): void {
    const length = end - start;
    const ahead = length <= bytesPerPacket ? this.#positionAhead(ssrc, index) : -1;
    const stream = ahead >= 0 ? this.#ahead : this.#streamOf(ssrc, index, length);
    const from = Math.max(0, ahead);
    for (let at = 0; at < length; at += 1) {
      bytes[start + at] = (bytes[start + at] as number) ^ (stream[from + at] as number);
    }
  }

  /** @returns -1 if the packet is older than those whose key stream we have */
  #positionAhead(ssrc: number, index: number): number {
    const isSame = ssrc === this.#aheadSsrc && this.#aheadIndex >= 0;
    if (isSame && index < this.#aheadIndex) return -1;
    if (!isSame || index >= this.#aheadIndex + packetsAhead) {
      for (let packet = 0; packet < packetsAhead; packet += 1) {
        const at = packet * bytesPerPacket;
        this.#writeCounters(this.#blocks, at, blocksAhead, ssrc, index + packet);
      }
      this.#ahead = this.#cipher.update(this.#blocks);
      this.#aheadSsrc = ssrc;
      this.#aheadIndex = index;
    }
    return (index - this.#aheadIndex) * bytesPerPacket;
  }

  #streamOf(ssrc: number, index: number, bytes: number): Uint8Array {
    const count = Math.ceil(bytes / blockBytes);
    const blocks = new Uint8Array(count * blockBytes);
    this.#writeCounters(blocks, 0, count, ssrc, index);
    return this.#cipher.update(blocks);
  }

  /** IV = (salt * 2^16) XOR (SSRC * 2^64) XOR (index * 2^16), plus the number of the block. */
  #writeCounters(into: Uint8Array, at: number, count: number, ssrc: number, index: number): void {
    const high = Math.floor(index / 0x1_0000_0000);
    const low = index >>> 0;
    for (let block = 0; block < count; block += 1) {
      const from = at + block * blockBytes;
      into.set(this.#salt, from);
      xorUint32(into, from + 4, ssrc);
      into[from + 8] = (into[from + 8] as number) ^ (high >>> 8);
      into[from + 9] = (into[from + 9] as number) ^ (high & 0xff);
      xorUint32(into, from + 10, low);
      into[from + 14] = block >>> 8;
      into[from + 15] = block & 0xff;
    }
  }
}

function xorUint32(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = (bytes[at] as number) ^ (value >>> 24);
  bytes[at + 1] = (bytes[at + 1] as number) ^ ((value >>> 16) & 0xff);
  bytes[at + 2] = (bytes[at + 2] as number) ^ ((value >>> 8) & 0xff);
  bytes[at + 3] = (bytes[at + 3] as number) ^ (value & 0xff);
}
