// SRTP as RFC 3711 describes it, independent of `src/media/srtp` and as simple as possible: a new
// cipher for each packet, and no memory. The caller keeps the rollover counter and the index, so a
// test decides what the far end believes.

import { createCipheriv, createHmac } from 'node:crypto';

export type ReferenceKey = {
  readonly suite: 'AES_CM_128_HMAC_SHA1_80' | 'AES_CM_128_HMAC_SHA1_32';
  /** Key and salt as in `inline:`. */
  readonly inline: string;
};

type Derived = { readonly cipher: Buffer; readonly salt: Buffer; readonly mac: Buffer };

const rtpHeaderBytes = 12;
const reportClearBytes = 8;
const reportTagBytes = 10;
const encryptedFlag = 0x8000_0000;

export class ReferenceSrtp {
  readonly #rtp: Derived;
  readonly #rtcp: Derived;
  readonly #tagBytes: number;

  constructor({ suite, inline }: ReferenceKey) {
    const master = Buffer.from(inline, 'base64');
    this.#rtp = derive(master, 0);
    this.#rtcp = derive(master, 3);
    this.#tagBytes = suite.endsWith('_80') ? 10 : 4;
  }

  seal(packet: Buffer, rollover: number): Buffer {
    const sealed = this.#crypt(packet, rollover);
    return Buffer.concat([sealed, this.#tag(sealed, rollover)]);
  }

  /** @returns undefined if the tag is wrong */
  open(packet: Buffer, rollover: number): Buffer | undefined {
    const end = packet.length - this.#tagBytes;
    if (end < rtpHeaderBytes) return undefined;
    const sealed = packet.subarray(0, end);
    if (!this.#tag(sealed, rollover).equals(packet.subarray(end))) return undefined;
    return this.#crypt(sealed, rollover);
  }

  sealReport(report: Buffer, index: number): Buffer {
    const trailer = Buffer.alloc(4);
    trailer.writeUInt32BE(encryptedFlag + index);
    const sealed = Buffer.concat([this.#cryptReport(report, index), trailer]);
    return Buffer.concat([sealed, hmac(this.#rtcp, sealed).subarray(0, reportTagBytes)]);
  }

  /** @returns undefined if the tag is wrong, or the report isn't encrypted */
  openReport(packet: Buffer): { readonly report: Buffer; readonly index: number } | undefined {
    const end = packet.length - reportTagBytes;
    if (end < reportClearBytes + 4) return undefined;
    const sealed = packet.subarray(0, end);
    const tag = hmac(this.#rtcp, sealed).subarray(0, reportTagBytes);
    const trailer = packet.readUInt32BE(end - 4);
    if (!tag.equals(packet.subarray(end)) || trailer < encryptedFlag) return undefined;
    const index = trailer - encryptedFlag;
    return { report: this.#cryptReport(packet.subarray(0, end - 4), index), index };
  }

  #tag(sealed: Buffer, rollover: number): Buffer {
    const counter = Buffer.alloc(4);
    counter.writeUInt32BE(rollover);
    return hmac(this.#rtp, sealed, counter).subarray(0, this.#tagBytes);
  }

  #crypt(packet: Buffer, rollover: number): Buffer {
    const index = rollover * 0x1_0000 + packet.readUInt16BE(2);
    return crypt(packet, rtpHeaderBytes, this.#rtp, { ssrc: packet.readUInt32BE(8), index });
  }

  #cryptReport(report: Buffer, index: number): Buffer {
    return crypt(report, reportClearBytes, this.#rtcp, { ssrc: report.readUInt32BE(4), index });
  }
}

/** Section 4.3.1. `label`: that of the encryption key. */
function derive(master: Buffer, label: number): Derived {
  const [key, masterSalt] = [master.subarray(0, 16), master.subarray(16, 30)];
  const output = (offset: number, bytes: number): Buffer => {
    const iv = Buffer.concat([masterSalt, Buffer.alloc(2)]);
    iv.writeUInt8(iv.readUInt8(7) ^ (label + offset), 7);
    return createCipheriv('aes-128-ctr', key, iv).update(Buffer.alloc(bytes));
  };
  return { cipher: output(0, 16), mac: output(1, 20), salt: output(2, 14) };
}

function hmac({ mac }: Derived, ...parts: readonly Buffer[]): Buffer {
  return createHmac('sha1', mac).update(Buffer.concat(parts)).digest();
}

/** Section 4.1.1: IV = (salt * 2^16) XOR (SSRC * 2^64) XOR (index * 2^16). */
function crypt(
  packet: Buffer,
  clearBytes: number,
  { cipher, salt }: Derived,
  { ssrc, index }: { readonly ssrc: number; readonly index: number },
): Buffer {
  const number = (BigInt(ssrc) << 64n) ^ (BigInt(index) << 16n);
  const iv = (BigInt(`0x${salt.toString('hex')}`) << 16n) ^ number;
  const bytes = Buffer.from(iv.toString(16).padStart(32, '0'), 'hex');
  const body = createCipheriv('aes-128-ctr', cipher, bytes).update(packet.subarray(clearBytes));
  return Buffer.concat([packet.subarray(0, clearBytes), body]);
}
