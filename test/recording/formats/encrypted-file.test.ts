// The encrypted file of a recording: it opens with the account's private key, and every change of
// it is noticed. Its reader comes from the internet's side, so nothing may make it throw.

import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decryptRecordingFile } from '../../../src/recording/formats/decrypt-file.ts';
import {
  chunkBytes,
  FileDecryptor,
  FileEncryptor,
  readPrefix,
} from '../../../src/recording/formats/encrypted-file.ts';
import {
  readPrivateKey,
  readPublicKey,
  unwrapContentKey,
} from '../../../src/recording/formats/key-wrapping.ts';
import { type KeyPair, keyPairs, wrappedFor } from '../support/recording-keys.ts';

const pairs = keyPairs();
const [[, pair]] = pairs as [[string, KeyPair]];
const sealedChunk = chunkBytes + 16;

function encrypt(plain: Uint8Array, { key = pair, piece = 10_000 } = {}): Buffer {
  const contentKey = randomBytes(32);
  const wrapped = wrappedFor(key, contentKey);
  const encryptor = new FileEncryptor({ callId: 'call-1', keyName: 'crm', contentKey, wrapped });
  const chunks: Buffer[] = [encryptor.prefix];
  for (let at = 0; at < plain.length; at += piece) {
    chunks.push(...encryptor.push(plain.subarray(at, at + piece)));
  }
  return Buffer.concat([...chunks, encryptor.end()]);
}

function decrypt(file: Uint8Array, { key = pair, piece = 70_000 } = {}): Buffer | string {
  const decryptor = new FileDecryptor(key.privateKey);
  const plain: Buffer[] = [];
  for (let at = 0; at < file.length; at += piece) {
    const step = decryptor.push(file.subarray(at, at + piece));
    if (!step.ok) return step.problem;
    plain.push(...step.plain);
  }
  const last = decryptor.end();
  return last.ok ? Buffer.concat([...plain, ...last.plain]) : last.problem;
}

/** Splits a file into what precedes the chunks, and the chunks. */
function parts(file: Buffer): { prefix: Buffer; chunks: Buffer[] } {
  const prefix = readPrefix(file);
  if (prefix.kind !== 'read') throw new Error('no prefix');
  const chunks: Buffer[] = [];
  for (let at = prefix.chunksAt; at < file.length; at += sealedChunk) {
    chunks.push(file.subarray(at, at + sealedChunk));
  }
  return { prefix: file.subarray(0, prefix.chunksAt), chunks };
}

const plain = randomBytes(3 * chunkBytes + 1_000);
const file = encrypt(plain);
const { prefix, chunks } = parts(file);
const [first, second, third, last] = chunks as [Buffer, Buffer, Buffer, Buffer];

describe('an encrypted file', () => {
  test.each(pairs)('opens with the private key of type %s', (_, key) => {
    const opened = decrypt(encrypt(plain, { key }), { key });
    expect(Buffer.isBuffer(opened) && opened.equals(plain)).toBe(true);
  });

  test('has any length, and is written and read in any pieces', () => {
    const length = fc.oneof(
      fc.nat(300),
      fc.constantFrom(chunkBytes - 1, chunkBytes, chunkBytes + 1),
    );
    const piece = fc.integer({ min: 1_000, max: 200_000 });
    fc.assert(
      fc.property(length, piece, piece, (bytes, writePiece, readPiece) => {
        const content = plain.subarray(0, bytes);
        const opened = decrypt(encrypt(content, { piece: writePiece }), { piece: readPiece });
        expect(Buffer.isBuffer(opened) && opened.equals(content)).toBe(true);
      }),
      { numRuns: 40 },
    );
  });

  test.each(pairs)('does not open with another key of type %s', (type, key) => {
    const [[, other] = [type, key]] = keyPairs().filter(([kind]) => kind === type);
    expect(decrypt(encrypt(plain, { key }), { key: other })).toMatch(/^wrong key: .*“crm”/);
    const [[, different] = [type, key]] = pairs.filter(([kind]) => kind !== type);
    expect(decrypt(encrypt(plain, { key }), { key: different })).toMatch(/^wrong key: .* needs an/);
  });

  test.each([
    ['cut between two chunks', [first, second, third], /truncated after chunk 3/],
    [
      'cut within a chunk',
      [first, second, third, last.subarray(0, 500)],
      /chunk 4 .*or the file is truncated/,
    ],
    ['cut within a tag', [first, second, third, last.subarray(0, 5)], /truncated after chunk 3/],
    ['without its last two chunks', [first, second], /truncated after chunk 2/],
    ['without a chunk in the middle', [first, third, last], /chunk 2 was changed, moved/],
    ['with two chunks exchanged', [second, first, third, last], /header or chunk 1 was changed/],
    ['with a chunk repeated', [first, second, second, third, last], /chunk 3 was changed, moved/],
    ['with something after its end', [...chunks, Buffer.alloc(10)], /chunk 4 was changed/],
    ['without chunks', [], /truncated after chunk 0/],
  ])('%s is refused', (_, kept, problem) => {
    expect(decrypt(Buffer.concat([prefix, ...kept]))).toMatch(problem);
  });

  test('with the chunks of another file for the same key is refused', () => {
    const other = parts(encrypt(plain));
    expect(decrypt(Buffer.concat([prefix, first, ...other.chunks.slice(1)]))).toMatch(/chunk 2/);
    expect(decrypt(Buffer.concat([other.prefix, ...chunks]))).toMatch(/header or chunk 1/);
  });

  test('with any single bit changed is refused', () => {
    fc.assert(
      fc.property(fc.nat(file.length * 8 - 1), (bit) => {
        const changed = Buffer.from(file);
        changed[bit >> 3] = (changed[bit >> 3] as number) ^ (1 << (bit & 7));
        expect(typeof decrypt(changed)).toBe('string');
      }),
      { numRuns: 60 },
    );
  });

  test('that is anything at all is refused in words', () => {
    const garbage = fc.oneof(
      fc.uint8Array({ maxLength: 200 }),
      fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.concat([prefix, bytes])),
      fc
        .uint8Array({ maxLength: 60 })
        .map((bytes) => Buffer.concat([prefix.subarray(0, 12), bytes])),
    );
    fc.assert(
      fc.property(garbage, (bytes) => {
        expect(typeof decrypt(bytes)).toBe('string');
      }),
    );
  });

  test('is decrypted into a file only if all of it is authentic', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'offhook-decrypt-'));
    try {
      const [source, target] = [join(folder, 'x.wav.enc'), join(folder, 'x.wav')];
      writeFileSync(source, file.subarray(0, -1));
      const refused = await decryptRecordingFile(source, target, pair.privateKey);
      expect([refused.ok, readdirSync(folder)]).toEqual([false, ['x.wav.enc']]);
      writeFileSync(source, file);
      expect(await decryptRecordingFile(source, target, pair.privateKey)).toEqual({
        ...{ ok: true, bytes: plain.length },
      });
      expect(readFileSync(target).equals(plain)).toBe(true);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe('a key', () => {
  test('must be a public key of a known kind and a sufficient length', () => {
    const small = generateKeyPairSync('rsa', { modulusLength: 1_024 }).publicKey;
    const signing = generateKeyPairSync('ed25519').publicKey;
    const pem = (key: typeof small) => key.export({ type: 'spki', format: 'pem' }).toString();
    const secret = pair.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();

    expect(readPublicKey(pair.publicPem)).toMatchObject({
      ok: true,
      algorithm: 'X25519-HKDF-A256GCM',
    });
    expect(readPublicKey(pem(small))).toMatchObject({
      problem: expect.stringContaining('1024 bits'),
    });
    expect(readPublicKey(pem(signing))).toMatchObject({
      problem: expect.stringContaining('ed25519'),
    });
    expect(readPublicKey(secret)).toMatchObject({
      problem: expect.stringContaining('private key'),
    });
    expect(readPublicKey('x')).toMatchObject({ problem: 'not a public key in PEM' });
    expect(readPrivateKey(pair.publicPem)).toMatchObject({ ok: false });
    expect(readPrivateKey(secret)).toMatchObject({ ok: true });
  });

  test('never makes the reader throw, whatever was wrapped', () => {
    fc.assert(
      fc.property(fc.base64String(), fc.constantFrom(...pairs), (key, [type, { privateKey }]) => {
        const algorithm = type === 'rsa' ? 'RSA-OAEP-256' : 'X25519-HKDF-A256GCM';
        expect(unwrapContentKey({ algorithm, key }, privateKey).ok).toBe(false);
      }),
    );
  });
});
