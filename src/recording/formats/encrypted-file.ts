// An encrypted recording, `.wav.enc`: `| magic 8 | length of the header 4 | header | chunks |`. The
// header is JSON and contains the wrapped content key. Each chunk is 64 KiB of the WAV file, except
// the last, which may be shorter, followed by its tag (AES-256-GCM). The nonce consists of the
// chunk's number and whether it's the last, so that chunks can't be moved, repeated or left out, as
// in STREAM (Hoang, Reyhanitabar, Rogaway, Vizár 2015). The key of the chunks depends on the
// header's hash, so that the header can't be changed either. Nothing here throws on a damaged file.

import {
  createCipheriv,
  createDecipheriv,
  createHash,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto';
import { z } from 'zod';
import { unwrapContentKey, type WrappedKey } from './key-wrapping.ts';

const magic = Buffer.from('OFHKREC1', 'latin1');
const prefixBytes = magic.length + 4;
export const chunkBytes = 64 * 1024;
const tagBytes = 16;
const sealedChunkBytes = chunkBytes + tagBytes;
/** An RSA key of 8,192 bits is 1,368 characters in base64. Names and ids are short. */
const maxHeaderBytes = 16 * 1024;
const maxChunks = 2 ** 32;

const headerSchema = z.object({
  version: z.literal(1),
  callId: z.string(),
  /** Name of the account's key. */
  keyName: z.string(),
  algorithm: z.literal('AES-256-GCM'),
  chunkBytes: z.literal(chunkBytes),
  /** Makes the key of this file unique, even if a recording is finished twice. */
  salt: z.string(),
  wrapped: z.object({
    algorithm: z.enum(['RSA-OAEP-256', 'X25519-HKDF-A256GCM']),
    key: z.string(),
  }),
});

export type EncryptedHeader = z.infer<typeof headerSchema>;

type Failed = { readonly ok: false; readonly problem: string };

/** Encrypts a file from its beginning to its end, in pieces of any length. */
export class FileEncryptor {
  readonly #key: Buffer;
  /** The file's beginning, before the first chunk. */
  readonly prefix: Buffer;
  readonly #pending = Buffer.allocUnsafe(chunkBytes);
  #length = 0;
  #chunk = 0;

  constructor(options: {
    readonly callId: string;
    readonly keyName: string;
    readonly contentKey: Uint8Array;
    readonly wrapped: WrappedKey;
  }) {
    const { callId, keyName, wrapped } = options;
    const header: EncryptedHeader = {
      ...{ version: 1, callId, keyName, algorithm: 'AES-256-GCM', chunkBytes },
      ...{ salt: randomBytes(16).toString('base64'), wrapped },
    };
    const bytes = Buffer.from(JSON.stringify(header), 'utf8');
    const length = Buffer.alloc(4);
    length.writeUInt32BE(bytes.length);
    this.prefix = Buffer.concat([magic, length, bytes]);
    this.#key = fileKey(options.contentKey, bytes);
  }

  /** Returns the chunks that are complete. The last one is never among them. */
  push(plain: Uint8Array): readonly Buffer[] {
    const sealed: Buffer[] = [];
    for (let at = 0; at < plain.length; ) {
      if (this.#length === chunkBytes) sealed.push(this.#seal(false));
      const count = Math.min(plain.length - at, chunkBytes - this.#length);
      this.#pending.set(plain.subarray(at, at + count), this.#length);
      this.#length += count;
      at += count;
    }
    return sealed;
  }

  /** Returns the last chunk. */
  end(): Buffer {
    return this.#seal(true);
  }

  #seal(isLast: boolean): Buffer {
    const cipher = createCipheriv('aes-256-gcm', this.#key, nonceOf(this.#chunk, isLast));
    const sealed = Buffer.allocUnsafe(this.#length + tagBytes);
    cipher.update(this.#pending.subarray(0, this.#length)).copy(sealed);
    cipher.final();
    cipher.getAuthTag().copy(sealed, this.#length);
    this.#chunk += 1;
    this.#length = 0;
    return sealed;
  }
}

export type PrefixResult =
  /** The prefix isn't whole yet. */
  | { readonly kind: 'incomplete' }
  | {
      readonly kind: 'read';
      readonly header: EncryptedHeader;
      /** The chunks begin here. */
      readonly chunksAt: number;
      /** What the key depends on. */
      readonly headerBytes: Buffer;
    }
  | { readonly kind: 'failed'; readonly problem: string };

/** Reads the beginning of an encrypted recording. */
export function readPrefix(bytes: Buffer): PrefixResult {
  const known = bytes.subarray(0, magic.length);
  if (!known.equals(magic.subarray(0, known.length))) {
    return { kind: 'failed', problem: 'not an encrypted recording' };
  }
  if (bytes.length < prefixBytes) return { kind: 'incomplete' };
  const length = bytes.readUInt32BE(magic.length);
  if (length > maxHeaderBytes) return { kind: 'failed', problem: 'the header is damaged' };
  const chunksAt = prefixBytes + length;
  if (bytes.length < chunksAt) return { kind: 'incomplete' };
  const headerBytes = bytes.subarray(prefixBytes, chunksAt);
  const header = headerSchema.safeParse(parsed(headerBytes));
  return header.success
    ? { kind: 'read', header: header.data, chunksAt, headerBytes }
    : { kind: 'failed', problem: 'the header is damaged, or of a later version' };
}

export type DecryptStep = { readonly ok: true; readonly plain: readonly Buffer[] } | Failed;

/**
 * Decrypts a file in pieces of any length. What it returns is authentic, but the file is only whole
 * if `end` succeeds.
 */
export class FileDecryptor {
  readonly #privateKey: KeyObject;
  #pending: Buffer = Buffer.alloc(0);
  #key: Buffer | undefined;
  #chunk = 0;
  #failed: Failed | undefined;

  /** `privateKey` comes from `readPrivateKey`. */
  constructor(privateKey: KeyObject) {
    this.#privateKey = privateKey;
  }

  push(bytes: Uint8Array): DecryptStep {
    if (this.#failed !== undefined) return this.#failed;
    this.#pending = Buffer.concat([this.#pending, bytes]);
    const opened = this.#key === undefined ? this.#open() : undefined;
    if (opened !== undefined) return this.#fail(opened);
    const plain: Buffer[] = [];
    if (this.#key === undefined) return { ok: true, plain };
    let at = 0;
    // Keep a whole chunk back, because only the file's end tells whether it's the last.
    while (this.#pending.length - at > sealedChunkBytes) {
      const chunk = this.#decrypt(this.#pending.subarray(at, at + sealedChunkBytes), false);
      if (chunk === undefined) return this.#fail(this.#damage());
      plain.push(chunk);
      at += sealedChunkBytes;
    }
    this.#pending = this.#pending.subarray(at);
    return { ok: true, plain };
  }

  /** Ends the file. */
  end(): DecryptStep {
    if (this.#failed !== undefined) return this.#failed;
    if (this.#key === undefined) return this.#fail('the file ends within its header');
    const rest = this.#pending;
    const last = this.#decrypt(rest, true);
    if (last !== undefined) return { ok: true, plain: [last] };
    // A file that was cut between two chunks ends with one that isn't the last, and one that was
    // cut elsewhere ends with a torn chunk.
    const isCut = this.#decrypt(rest, false) !== undefined || rest.length < tagBytes;
    return this.#fail(
      isCut
        ? `the file is truncated after chunk ${this.#chunk}`
        : `${this.#damage()}, or the file is truncated`,
    );
  }

  /** @returns a problem, or undefined if the header has been read or isn't whole yet */
  #open(): string | undefined {
    const prefix = readPrefix(this.#pending);
    if (prefix.kind === 'incomplete') return undefined;
    if (prefix.kind === 'failed') return prefix.problem;
    const unwrapped = unwrapContentKey(prefix.header.wrapped, this.#privateKey);
    if (!unwrapped.ok) {
      return `wrong key: ${unwrapped.problem} (“${prefix.header.keyName}”)`;
    }
    this.#key = fileKey(unwrapped.contentKey, prefix.headerBytes);
    this.#pending = this.#pending.subarray(prefix.chunksAt);
    return undefined;
  }

  #decrypt(sealed: Buffer, isLast: boolean): Buffer | undefined {
    if (this.#key === undefined || sealed.length < tagBytes) return undefined;
    if (this.#chunk >= maxChunks) return undefined;
    const decipher = createDecipheriv('aes-256-gcm', this.#key, nonceOf(this.#chunk, isLast), {
      authTagLength: tagBytes,
    });
    decipher.setAuthTag(sealed.subarray(-tagBytes));
    const plain = decipher.update(sealed.subarray(0, -tagBytes));
    try {
      decipher.final();
    } catch {
      return undefined;
    }
    this.#chunk += 1;
    return plain;
  }

  #damage(): string {
    const what = `chunk ${this.#chunk + 1} was changed, moved, or comes from another file`;
    return this.#chunk === 0 ? `the header or ${what}` : what;
  }

  #fail(problem: string): Failed {
    this.#failed = { ok: false, problem };
    this.#pending = Buffer.alloc(0);
    return this.#failed;
  }
}

/** The header's hash is part of the derivation, and so is the salt in the header. */
function fileKey(contentKey: Uint8Array, headerBytes: Buffer): Buffer {
  const salt = createHash('sha256').update(headerBytes).digest();
  return Buffer.from(hkdfSync('sha256', contentKey, salt, 'offhook recording file', 32));
}

function nonceOf(chunk: number, isLast: boolean): Buffer {
  const nonce = Buffer.alloc(12);
  nonce[7] = isLast ? 1 : 0;
  nonce.writeUInt32BE(chunk, 8);
  return nonce;
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    return undefined;
  }
}
