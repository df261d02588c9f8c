// Decrypts a recording from one file into another. The target only appears when all of it is
// authentic and whole.

import type { KeyObject } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { FileDecryptor } from './encrypted-file.ts';

export type DecryptedFile =
  | { readonly ok: true; readonly bytes: number }
  | { readonly ok: false; readonly problem: string };

/**
 * `privateKey` comes from `readPrivateKey`.
 *
 * @throws the error of the file system
 */
export async function decryptRecordingFile(
  source: string,
  target: string,
  privateKey: KeyObject,
): Promise<DecryptedFile> {
  const part = `${target}.part`;
  const result = await decryptInto(source, part, new FileDecryptor(privateKey)).catch(
    async (error: unknown) => {
      await rm(part, { force: true });
      throw error;
    },
  );
  if (result.ok) await rename(part, target);
  else await rm(part, { force: true });
  return result;
}

async function decryptInto(
  source: string,
  part: string,
  decryptor: FileDecryptor,
): Promise<DecryptedFile> {
  await using file = await open(part, 'w', 0o600);
  let bytes = 0;
  const write = async (plain: readonly Buffer[]): Promise<void> => {
    for (const piece of plain) {
      await file.writeFile(piece);
      bytes += piece.length;
    }
  };
  for await (const piece of createReadStream(source)) {
    const step = decryptor.push(piece as Buffer);
    if (!step.ok) return step;
    await write(step.plain);
  }
  const last = decryptor.end();
  if (!last.ok) return last;
  await write(last.plain);
  await file.sync();
  return { ok: true, bytes };
}
