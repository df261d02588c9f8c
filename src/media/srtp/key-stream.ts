// The key stream of AES in counter mode (RFC 3711, section 4.1.1). A new cipher for each packet
// would take most of SRTP's time, so one cipher encrypts the counter blocks of several packets in
// advance. That's possible because we know their SSRC and their indexes.

import { type Cipher, createCipheriv } from 'node:crypto';

const blockBytes = 16;
const blockWords = blockBytes / 4;
/** A frame of 20 ms has 160 bytes. Longer packets get their key stream on their own. */
const blocksAhead = 10;
const bytesPerPacket = blocksAhead * blockBytes;
/** 320 ms of packets. More would hardly be cheaper, and this takes 2.5 kB per direction already. */
const packetsAhead = 16;

/** Blocks that AES turns into the key stream. */
class CounterBlocks {
  readonly bytes: Uint8Array;
  readonly #words: Uint32Array;

  constructor(count: number) {
    this.bytes = new Uint8Array(count * blockBytes);
    this.#words = new Uint32Array(this.bytes.buffer);
  }

  /** IV = (salt * 2^16) XOR (SSRC * 2^64) XOR (index * 2^16), plus the number of the block. */
  write(first: number, count: number, salt: Uint8Array, ssrc: number, index: number): void {
    const { bytes } = this;
    const words = this.#words;
    const at = first * blockBytes;
    const high = Math.floor(index / 0x1_0000_0000);
    for (let byte = 0; byte < salt.length; byte += 1) bytes[at + byte] = salt[byte] as number;
    xorUint32(bytes, at + 4, ssrc);
    bytes[at + 8] = (bytes[at + 8] as number) ^ (high >>> 8);
    bytes[at + 9] = (bytes[at + 9] as number) ^ (high & 0xff);
    xorUint32(bytes, at + 10, index >>> 0);
    bytes[at + 14] = 0;
    bytes[at + 15] = 0;
    // Words are copied faster than bytes.
    for (let block = 1; block < count; block += 1) {
      const word = (first + block) * blockWords;
      words[word] = words[first * blockWords] as number;
      words[word + 1] = words[first * blockWords + 1] as number;
      words[word + 2] = words[first * blockWords + 2] as number;
      words[word + 3] = words[first * blockWords + 3] as number;
      bytes[at + block * blockBytes + 14] = block >>> 8;
      bytes[at + block * blockBytes + 15] = block & 0xff;
    }
  }
}

/** Shared by the key streams of a thread, because AES reads the blocks when they are written. */
const countersAhead = new CounterBlocks(packetsAhead * blocksAhead);

export class KeyStream {
  readonly #cipher: Cipher;
  readonly #salt: Uint8Array;
  readonly #isMadeAhead: boolean;
  #ahead: Uint8Array = new Uint8Array(0);
  #aheadSsrc = 0;
  #aheadIndex = -1;

  /** @param isMadeAhead false if packets are so rare that each gets its key stream on its own */
  constructor(
    keys: { readonly encryption: Uint8Array; readonly salt: Uint8Array },
    isMadeAhead: boolean,
  ) {
    this.#cipher = createCipheriv('aes-128-ecb', keys.encryption, null);
    this.#cipher.setAutoPadding(false);
    this.#salt = keys.salt;
    this.#isMadeAhead = isMadeAhead;
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

  /** @returns -1 if we don't have the packet's key stream, and don't make it in advance */
  #positionAhead(ssrc: number, index: number): number {
    const isSame = ssrc === this.#aheadSsrc && this.#aheadIndex >= 0;
    if (!this.#isMadeAhead || (isSame && index < this.#aheadIndex)) return -1;
    if (!isSame || index >= this.#aheadIndex + packetsAhead) {
      for (let packet = 0; packet < packetsAhead; packet += 1) {
        const first = packet * blocksAhead;
        countersAhead.write(first, blocksAhead, this.#salt, ssrc, index + packet);
      }
      this.#ahead = this.#cipher.update(countersAhead.bytes);
      this.#aheadSsrc = ssrc;
      this.#aheadIndex = index;
    }
    return (index - this.#aheadIndex) * bytesPerPacket;
  }

  #streamOf(ssrc: number, index: number, bytes: number): Uint8Array {
    const count = Math.ceil(bytes / blockBytes);
    const counters = new CounterBlocks(count);
    counters.write(0, count, this.#salt, ssrc, index);
    return this.#cipher.update(counters.bytes);
  }
}

function xorUint32(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = (bytes[at] as number) ^ (value >>> 24);
  bytes[at + 1] = (bytes[at + 1] as number) ^ ((value >>> 16) & 0xff);
  bytes[at + 2] = (bytes[at + 2] as number) ^ ((value >>> 8) & 0xff);
  bytes[at + 3] = (bytes[at + 3] as number) ^ (value & 0xff);
}
