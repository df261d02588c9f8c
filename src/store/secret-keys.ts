// The keys that encrypt stored secrets: SECRETS_KEY, or a generated key next to the embedded data,
// and the key before it while the keys are being changed.

import { hkdfSync, randomBytes } from 'node:crypto';
import { link, open, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder } from '../lib/make-folder.ts';

export const keyBytes = 32;
/** Long enough that two keys of one database never share an id by accident. */
export const keyIdBytes = 5;
const keyFileName = 'secrets.key';

export type SecretKeys = { readonly current: Buffer; readonly previous?: Buffer };

export type SecretKeyOptions = {
  readonly secretsKey?: string | undefined;
  readonly previousSecretsKey?: string | undefined;
  readonly dataDir: string;
};

/**
 * Reads the keys. If SECRETS_KEY isn't set (e.g. in the embedded profile), uses a generated key
 * that is stored next to the data.
 *
 * @throws Error that names the variable or file of a key that cannot be used
 */
export async function readSecretKeys(options: SecretKeyOptions): Promise<SecretKeys> {
  const { secretsKey, previousSecretsKey, dataDir } = options;
  const path = join(dataDir, keyFileName);
  const current =
    secretsKey === undefined
      ? parseKey(await readOrCreateKeyFile(dataDir, path), path)
      : parseKey(secretsKey, 'SECRETS_KEY');
  if (previousSecretsKey === undefined) return { current };
  const previous = parseKey(previousSecretsKey, 'SECRETS_KEY_PREVIOUS');
  if (!current.equals(previous)) return { current, previous };
  throw new Error(
    `SECRETS_KEY_PREVIOUS is the same key as ${secretsKey === undefined ? path : 'SECRETS_KEY'}`,
  );
}

/** Returns what a ciphertext says about its key. The id reveals nothing about the key itself. */
export function keyIdOf(key: Buffer): Buffer {
  return Buffer.from(hkdfSync('sha256', key, '', 'offhook key id', keyIdBytes));
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
