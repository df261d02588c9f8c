// Keys of SRTP (RFC 3711): the suites that we support, and the session keys that section 4.3
// derives from a master key.

import { createCipheriv } from 'node:crypto';

/** Names as in `a=crypto` (RFC 4568, section 6.2), in our order of preference. */
export const srtpSuites = ['AES_CM_128_HMAC_SHA1_80', 'AES_CM_128_HMAC_SHA1_32'] as const;
export type SrtpSuite = (typeof srtpSuites)[number];

export const masterKeyBytes = 16;
export const masterSaltBytes = 14;

/** The master key of one direction. */
export type SrtpKey = {
  readonly suite: SrtpSuite;
  /** 16 bytes of key, followed by 14 bytes of salt, as in `inline:` (RFC 4568, section 6.1). */
  readonly keyAndSalt: Uint8Array;
};

export function isSameKey(one: SrtpKey, other: SrtpKey): boolean {
  return one.suite === other.suite && Buffer.compare(one.keyAndSalt, other.keyAndSalt) === 0;
}

/** Length of the tag that ends each RTP packet. RTCP packets end with 10 bytes in both suites. */
export const tagBytes: Readonly<Record<SrtpSuite, number>> = {
  AES_CM_128_HMAC_SHA1_80: 10,
  AES_CM_128_HMAC_SHA1_32: 4,
};

export type SessionKeys = {
  readonly encryption: Uint8Array;
  readonly authentication: Uint8Array;
  readonly salt: Uint8Array;
};

const authenticationKeyBytes = 20;

/** RFC 3711, section 4.3.1, without a key derivation rate, so each key is derived once. */
export function sessionKeys({ keyAndSalt }: SrtpKey, kind: 'rtp' | 'rtcp'): SessionKeys {
  const key = keyAndSalt.subarray(0, masterKeyBytes);
  const salt = keyAndSalt.subarray(masterKeyBytes, masterKeyBytes + masterSaltBytes);
  const first = kind === 'rtp' ? 0 : 3;
  const derive = (label: number, bytes: number): Uint8Array => {
    const counter = new Uint8Array(16);
    counter.set(salt);
    // The label is the eighth byte from the right of the 112-bit salt.
    counter[7] = (counter[7] as number) ^ label;
    return createCipheriv('aes-128-ctr', key, counter).update(new Uint8Array(bytes));
  };
  return {
    encryption: derive(first, masterKeyBytes),
    authentication: derive(first + 1, authenticationKeyBytes),
    salt: derive(first + 2, masterSaltBytes),
  };
}
