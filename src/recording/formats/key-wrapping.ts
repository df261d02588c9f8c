// Encrypts a recording's content key for an account's public key, which is RSA (OAEP with SHA-256)
// or X25519. Only the account has the private key, so nobody else can play the recording, not even
// the gateway that made it. Nothing here throws on keys or texts from outside.

import {
  constants,
  createCipheriv,
  createDecipheriv,
  createHash,
  createPrivateKey,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
  privateDecrypt,
  publicEncrypt,
} from 'node:crypto';
import type { RecordingEncryption } from '../../calls/recording/recording.ts';

export type WrappedKey = RecordingEncryption['wrapped'];

type Failed = { readonly ok: false; readonly problem: string };

export type PublicKeyResult =
  | {
      readonly ok: true;
      readonly key: KeyObject;
      readonly algorithm: WrappedKey['algorithm'];
      /** SHA-256 of the key's DER form, in hexadecimal, by which people compare keys. */
      readonly fingerprint: string;
    }
  | Failed;
export type PrivateKeyResult = { readonly ok: true; readonly key: KeyObject } | Failed;
export type UnwrapResult = { readonly ok: true; readonly contentKey: Buffer } | Failed;

export const contentKeyBytes = 32;
/** NIST SP 800-131A: anything shorter isn't acceptable. */
const minRsaBits = 2_048;
/** A longer key makes each call more expensive, and not noticeably safer. */
const maxRsaBits = 8_192;
/** PEM files of such keys have a few kilobytes. */
const maxPemLength = 32 * 1024;
const rawX25519Bytes = 32;
const tagBytes = 16;
/** A DER-encoded X25519 public key is this, followed by the raw key (RFC 8410). */
const x25519Prefix = Buffer.from('302a300506032b656e032100', 'hex');

/** Reads an account's public key in PEM (SPKI or PKCS #1, or a certificate). */
export function readPublicKey(pem: string): PublicKeyResult {
  if (pem.length > maxPemLength) return failed('the file is too long for a public key');
  // `createPublicKey` would derive the public key, and we don't want to have seen the private one.
  if (pem.includes('PRIVATE KEY')) {
    return failed('this is a private key, which must never leave your computer');
  }
  const key = tryTo(() => createPublicKey(pem));
  if (key === undefined) return failed('not a public key in PEM');
  const algorithm = algorithmOf(key);
  if (typeof algorithm !== 'string') return algorithm;
  const der = key.export({ type: 'spki', format: 'der' });
  return { ok: true, key, algorithm, fingerprint: createHash('sha256').update(der).digest('hex') };
}

/** Reads a private key in PEM. `passphrase` is needed if the key is encrypted. */
export function readPrivateKey(pem: string, passphrase?: string): PrivateKeyResult {
  if (pem.length > maxPemLength) return failed('the file is too long for a private key');
  const key = tryTo(() =>
    createPrivateKey({ key: pem, ...(passphrase === undefined ? {} : { passphrase }) }),
  );
  if (key === undefined) return failed('not a private key in PEM, or its passphrase is wrong');
  const algorithm = algorithmOf(key);
  return typeof algorithm === 'string' ? { ok: true, key } : algorithm;
}

/** `publicKey` comes from `readPublicKey`. */
export function wrapContentKey(contentKey: Uint8Array, publicKey: KeyObject): WrappedKey {
  if (publicKey.asymmetricKeyType === 'rsa') {
    const key = publicEncrypt(oaep(publicKey), contentKey).toString('base64');
    return { algorithm: 'RSA-OAEP-256', key };
  }
  const ephemeral = generateKeyPairSync('x25519');
  const shared = diffieHellman({ privateKey: ephemeral.privateKey, publicKey });
  const rawEphemeral = rawX25519(ephemeral.publicKey);
  const cipher = createCipheriv(
    'aes-256-gcm',
    wrappingKey(shared, rawEphemeral, rawX25519(publicKey)),
    singleUseNonce,
  );
  const sealed = Buffer.concat([cipher.update(contentKey), cipher.final(), cipher.getAuthTag()]);
  const key = Buffer.concat([rawEphemeral, sealed]).toString('base64');
  return { algorithm: 'X25519-HKDF-A256GCM', key };
}

/** `privateKey` comes from `readPrivateKey`. */
export function unwrapContentKey(wrapped: WrappedKey, privateKey: KeyObject): UnwrapResult {
  const needed = wrapped.algorithm === 'RSA-OAEP-256' ? 'rsa' : 'x25519';
  if (privateKey.asymmetricKeyType !== needed) {
    return failed(
      `the recording needs an ${needed.toUpperCase()} key, and this one is ${privateKey.asymmetricKeyType?.toUpperCase()}`,
    );
  }
  const bytes = Buffer.from(wrapped.key, 'base64');
  const contentKey = tryTo(() =>
    needed === 'rsa' ? privateDecrypt(oaep(privateKey), bytes) : openX25519(bytes, privateKey),
  );
  return contentKey?.length === contentKeyBytes
    ? { ok: true, contentKey }
    : failed('this private key doesn’t belong to the public key of the recording');
}

/** The wrapping key is used once, because each wrapping has an ephemeral key. */
const singleUseNonce = Buffer.alloc(12);

function openX25519(bytes: Buffer, privateKey: KeyObject): Buffer {
  const rawEphemeral = bytes.subarray(0, rawX25519Bytes);
  const ephemeral = createPublicKey({
    key: Buffer.concat([x25519Prefix, rawEphemeral]),
    format: 'der',
    type: 'spki',
  });
  const shared = diffieHellman({ privateKey, publicKey: ephemeral });
  const own = rawX25519(createPublicKey(privateKey));
  const decipher = createDecipheriv(
    'aes-256-gcm',
    wrappingKey(shared, rawEphemeral, own),
    singleUseNonce,
    { authTagLength: tagBytes },
  );
  decipher.setAuthTag(bytes.subarray(-tagBytes));
  const sealed = bytes.subarray(rawX25519Bytes, -tagBytes);
  return Buffer.concat([decipher.update(sealed), decipher.final()]);
}

/** Both public keys are part of the derivation, as in HPKE (RFC 9180, section 4.1). */
function wrappingKey(shared: Buffer, ephemeral: Buffer, recipient: Buffer): Buffer {
  const salt = Buffer.concat([ephemeral, recipient]);
  return Buffer.from(hkdfSync('sha256', shared, salt, 'offhook recording key', contentKeyBytes));
}

function rawX25519(publicKey: KeyObject): Buffer {
  return publicKey.export({ type: 'spki', format: 'der' }).subarray(-rawX25519Bytes);
}

function oaep(key: KeyObject) {
  return { key, padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: 'sha256' };
}

function algorithmOf(key: KeyObject): WrappedKey['algorithm'] | Failed {
  if (key.asymmetricKeyType === 'x25519') return 'X25519-HKDF-A256GCM';
  if (key.asymmetricKeyType !== 'rsa') {
    return failed(`a key of type ${key.asymmetricKeyType}; RSA and X25519 are supported`);
  }
  const bits = key.asymmetricKeyDetails?.modulusLength ?? 0;
  return bits >= minRsaBits && bits <= maxRsaBits
    ? 'RSA-OAEP-256'
    : failed(`an RSA key of ${bits} bits; ${minRsaBits} to ${maxRsaBits} are supported`);
}

function tryTo<Value>(run: () => Value): Value | undefined {
  try {
    return run();
  } catch {
    return undefined;
  }
}

function failed(problem: string): Failed {
  return { ok: false, problem };
}
