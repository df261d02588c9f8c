// Encrypts stored values that must not be readable in a dump: JWT, webhook and stream secrets,
// connections, and notification headers. We use AES-256-GCM. The format is `| version 1 | nonce 12
// | ciphertext | tag 16 |`. The additional data binds a ciphertext to its purpose and row.

import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto';
import { link, open, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder } from '../lib/make-folder.ts';

export type SecretPurpose =
  | 'jwt-secret'
  | 'webhook-secret'
  | 'stream-secret'
  | 'stream-query'
  | 'notify-headers'
  | 'connection';
/**
 * Values that the gateway signs so that it can recognise them when a client sends them back later.
 */
export type SignedPurpose = 'result-link';

/**
 * `id` identifies the row that the value belongs to. If a ciphertext is moved to a different row or
 * column, it can't be decrypted.
 */
export type SecretBox = {
  seal(purpose: SecretPurpose, id: string, plain: string): Buffer;
  /** @throws Error if the key is different, or if the ciphertext was changed or moved */
  open(purpose: SecretPurpose, id: string, sealed: Uint8Array): string;
  /** Returns an HMAC-SHA256, with a separate key for each purpose. */
  sign(purpose: SignedPurpose, text: string): Buffer;
};

const algorithm = 'aes-256-gcm';
const keyBytes = 32;
const nonceBytes = 12;
const tagBytes = 16;
/** Identifies the key, so that we can distinguish it from future keys. */
const keyVersion = 1;
const keyFileName = 'secrets.key';

/**
 * Opens the box with SECRETS_KEY. If that isn't set (e.g. in the embedded profile), uses a
 * generated key that is stored next to the data.
 */
export async function openSecretBox(options: {
  readonly secretsKey?: string;
  readonly dataDir: string;
}): Promise<SecretBox> {
  if (options.secretsKey !== undefined)
    return createSecretBox(parseKey(options.secretsKey, 'SECRETS_KEY'));
  const path = join(options.dataDir, keyFileName);
  return createSecretBox(parseKey(await readOrCreateKeyFile(options.dataDir, path), path));
}

export function createSecretBox(key: Buffer): SecretBox {
  return {
    seal(purpose, id, plain) {
      const nonce = randomBytes(nonceBytes);
      const cipher = createCipheriv(algorithm, key, nonce, { authTagLength: tagBytes });
      cipher.setAAD(additionalData(purpose, id));
      const body = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final()]);
      return Buffer.concat([Buffer.from([keyVersion]), nonce, body, cipher.getAuthTag()]);
    },
    open(purpose, id, sealed) {
      const bytes = Buffer.from(sealed.buffer, sealed.byteOffset, sealed.byteLength);
      if (bytes.length < 1 + nonceBytes + tagBytes || bytes[0] !== keyVersion)
        throw new Error(`stored secret (${purpose}) has an unknown form`);
      const nonce = bytes.subarray(1, 1 + nonceBytes);
      const decipher = createDecipheriv(algorithm, key, nonce, { authTagLength: tagBytes });
      decipher.setAAD(additionalData(purpose, id));
      decipher.setAuthTag(bytes.subarray(-tagBytes));
      try {
        const body = decipher.update(bytes.subarray(1 + nonceBytes, -tagBytes));
        return Buffer.concat([body, decipher.final()]).toString('utf8');
      } catch (error) {
        throw new Error(`stored secret (${purpose}) does not open: was SECRETS_KEY changed?`, {
          cause: error,
        });
      }
    },
    sign(purpose, text) {
      const signingKey = hkdfSync('sha256', key, '', `offhook ${purpose}`, keyBytes);
      return createHmac('sha256', Buffer.from(signingKey)).update(text, 'utf8').digest();
    },
  };
}

/** @throws Error that names `source` */
export function parseKey(text: string, source: string): Buffer {
  const key = keyOf(text);
  if (key === undefined) throw new Error(`${source} ${keyForm}`);
  return key;
}

export const keyForm =
  'must be 32 bytes, as 64 hex digits or base64 (openssl rand -hex 32 makes one)';

/**
 * Reads 32 bytes from 64 hex digits, base64 or base64url. Padding is optional.
 *
 * @returns undefined if the text is in neither format
 */
export function keyOf(text: string): Buffer | undefined {
  const trimmed = text.trim();
  if (/^[0-9a-fA-F]{64}$/.test(trimmed)) return Buffer.from(trimmed, 'hex');
  if (/^[A-Za-z0-9+/_-]{43}=?$/.test(trimmed)) {
    const key = Buffer.from(trimmed, 'base64');
    if (key.length === keyBytes) return key;
  }
  return undefined;
}

async function readOrCreateKeyFile(dataDir: string, path: string): Promise<string> {
  const existing = await readIfExists(path);
  if (existing !== undefined) return existing;
  await makeFolder(dataDir);
  const draft = `${path}.${randomBytes(6).toString('hex')}`;
  const file = await open(draft, 'wx', 0o600);
  try {
    await file.writeFile(`${randomBytes(keyBytes).toString('hex')}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
  try {
    // Linking is atomic, and can't replace a key that another process has just created.
    await link(draft, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    await rm(draft, { force: true });
  }
  return await readFile(path, 'utf8');
}

async function readIfExists(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

function additionalData(purpose: SecretPurpose, id: string): Buffer {
  return Buffer.from(`${purpose}\0${id}`, 'utf8');
}
