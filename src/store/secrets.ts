// Encrypts stored values that must not be readable in a dump: JWT, webhook and stream secrets,
// connections, and notification headers. We use AES-256-GCM. The format is `| version 1 | key id 5
// | nonce 12 | ciphertext | tag 16 |`. The additional data binds a ciphertext to its purpose and
// row. The key id distinguishes ciphertexts of another key from damaged ones. Version and key id
// are six bytes, so in base64 (i.e. in JSON) they are always the same eight characters.

import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto';
import {
  keyBytes,
  keyIdBytes,
  keyIdOf,
  readSecretKeys,
  type SecretKeyOptions,
  type SecretKeys,
} from './secret-keys.ts';

export type SecretPurpose =
  | 'jwt-secret'
  | 'webhook-secret'
  | 'stream-secret'
  | 'stream-query'
  | 'notify-headers'
  | 'connection'
  | 'recording-key';
/**
 * Values that the gateway signs so that it can recognise them when a client sends them back later.
 */
export type SignedPurpose = 'result-link';

/**
 * `id` identifies the row that the value belongs to. If a ciphertext is moved to a different row or
 * column, it can't be decrypted.
 *
 * A box with a previous key opens values of both keys. It seals with the previous key until
 * `useCurrentKey`, because other gateways may not have the current key yet.
 */
export type SecretBox = {
  seal(purpose: SecretPurpose, id: string, plain: string): Buffer;
  /** @throws Error if the key is different, or if the ciphertext was changed or moved */
  open(purpose: SecretPurpose, id: string, sealed: Uint8Array): string;
  /**
   * Seals a value again, with the current key.
   *
   * @throws Error like `open`
   */
  reseal(purpose: SecretPurpose, id: string, sealed: Uint8Array): Buffer;
  /** Returns an HMAC-SHA256, with a separate key for each purpose. */
  sign(purpose: SignedPurpose, text: string): Buffer;
  /** Returns the signatures to accept, i.e. one for each key. */
  signatures(purpose: SignedPurpose, text: string): readonly Buffer[];
  useCurrentKey(): void;
  /** What newly sealed values begin with. */
  sealsWith(): Buffer;
  /** What ciphertexts of the keys begin with. */
  readonly headers: { readonly current: Buffer; readonly previous?: Buffer };
};

const algorithm = 'aes-256-gcm';
const nonceBytes = 12;
const tagBytes = 16;
const formatVersion = 1;
export const headerBytes = 1 + keyIdBytes;

type Key = { readonly key: Buffer; readonly header: Buffer };

/** Opens the box with the configured keys, or with the generated key next to the data. */
export async function openSecretBox(options: SecretKeyOptions): Promise<SecretBox> {
  return createSecretBox(await readSecretKeys(options));
}

export function createSecretBox(keys: Buffer | SecretKeys): SecretBox {
  const { current, previous } = Buffer.isBuffer(keys) ? { current: keys } : keys;
  const newest = toKey(current);
  const known = [newest, ...(previous === undefined ? [] : [toKey(previous)])];
  let sealing = known.at(-1) ?? newest;
  const open: SecretBox['open'] = (purpose, id, sealed) => {
    const bytes = Buffer.from(sealed.buffer, sealed.byteOffset, sealed.byteLength);
    const header = bytes.subarray(0, headerBytes);
    if (bytes.length < headerBytes + nonceBytes + tagBytes || header[0] !== formatVersion)
      throw new Error(`stored secret (${purpose}) has an unknown form`);
    const fitting = known.find((each) => each.header.equals(header));
    if (fitting === undefined) {
      throw new Error(
        `stored secret (${purpose}) is sealed with another key (${keyIdIn(header)}): was SECRETS_KEY changed?`,
      );
    }
    return decrypt(fitting, additionalData(purpose, id), bytes, purpose);
  };
  return {
    seal: (purpose, id, plain) => encrypt(sealing, additionalData(purpose, id), plain),
    open,
    reseal: (purpose, id, sealed) =>
      encrypt(newest, additionalData(purpose, id), open(purpose, id, sealed)),
    sign: (purpose, text) => hmac(sealing, purpose, text),
    signatures: (purpose, text) => known.map((each) => hmac(each, purpose, text)),
    useCurrentKey() {
      sealing = newest;
    },
    sealsWith: () => sealing.header,
    headers: {
      current: newest.header,
      ...(known[1] === undefined ? {} : { previous: known[1].header }),
    },
  };
}

/** Returns the id of a ciphertext's key, for people. */
export function keyIdIn(header: Uint8Array): string {
  return Buffer.from(header).subarray(1, headerBytes).toString('hex');
}

function toKey(key: Buffer): Key {
  return { key, header: Buffer.concat([Buffer.from([formatVersion]), keyIdOf(key)]) };
}

function encrypt({ key, header }: Key, context: Buffer, plain: string): Buffer {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv(algorithm, key, nonce, { authTagLength: tagBytes });
  cipher.setAAD(context);
  const body = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final()]);
  return Buffer.concat([header, nonce, body, cipher.getAuthTag()]);
}

function decrypt({ key }: Key, context: Buffer, bytes: Buffer, purpose: SecretPurpose): string {
  const nonce = bytes.subarray(headerBytes, headerBytes + nonceBytes);
  const decipher = createDecipheriv(algorithm, key, nonce, { authTagLength: tagBytes });
  decipher.setAAD(context);
  decipher.setAuthTag(bytes.subarray(-tagBytes));
  try {
    const body = decipher.update(bytes.subarray(headerBytes + nonceBytes, -tagBytes));
    return Buffer.concat([body, decipher.final()]).toString('utf8');
  } catch (error) {
    throw new Error(`stored secret (${purpose}) does not open: it was changed or moved`, {
      cause: error,
    });
  }
}

function hmac({ key }: Key, purpose: SignedPurpose, text: string): Buffer {
  const signingKey = hkdfSync('sha256', key, '', `offhook ${purpose}`, keyBytes);
  return createHmac('sha256', Buffer.from(signingKey)).update(text, 'utf8').digest();
}

function additionalData(purpose: SecretPurpose, id: string): Buffer {
  return Buffer.from(`${purpose}\0${id}`, 'utf8');
}
