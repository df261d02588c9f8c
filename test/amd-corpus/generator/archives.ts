// Opens packages that keep their recordings in an archive: zip files under other names, and the two
// archives of spoken dialogue of adventure games. The contents go into a folder beside each
// archive.

import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { wavOf } from './wav.ts';

/** Opens all archives in an unpacked package. */
export function openArchives(folder: string): void {
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((path) =>
    join(folder, path),
  );
  for (const path of paths) {
    if (/\.(pk3|wz)$/.test(path)) unzip(path);
    if (path.endsWith('queen.1c')) writeAll(path, queenSpeech(readFileSync(path)));
    if (path.endsWith('sky.dsk')) {
      const index = readFileSync(path.replace(/dsk$/, 'dnr'));
      writeAll(path, skySpeech(index, readFileSync(path)));
    }
  }
}

const nothingMatched = 11;

function unzip(path: string): void {
  const wanted = ['*.wav', '*.ogg'];
  const options = ['-q', '-o', path, ...wanted, '-d', `${path}.files`];
  const { status } = spawnSync('unzip', options, { stdio: 'ignore' });
  // An archive without recordings matches nothing.
  if (status !== 0 && status !== nothingMatched) throw new Error(`unzip ${path}: ${status}`);
}

type Speech = readonly (readonly [name: string, bytes: Buffer])[];

function writeAll(path: string, speech: Speech): void {
  mkdirSync(`${path}.files`, { recursive: true });
  for (const [name, bytes] of speech) writeFileSync(join(`${path}.files`, name), bytes);
}

/**
 * Reads Flight of the Amazon Queen as ScummVM packs it: a big-endian table of names, offsets and
 * lengths, from the 16th byte on. Speech is MP3. Its name ends with the speaker (J: the hero) and a
 * number.
 */
function queenSpeech(archive: Buffer): Speech {
  const entries = archive.readUInt16BE(13);
  return Array.from({ length: entries }, (_, index) => {
    const at = 15 + 21 * index;
    const [name = ''] = archive.toString('latin1', at, at + 12).split('\0');
    const from = archive.readUInt32BE(at + 13);
    return [name, archive.subarray(from, from + archive.readUInt32BE(at + 17))] as const;
  })
    .filter(([name]) => /^[^S]{7}\d\.SB$/.test(name))
    .map(([name, bytes]) => [name.replace(/SB$/, 'mp3'), bytes] as const);
}

/** Numbers of speech start here and end where the music's start. */
const firstSpeech = 50_000;
const firstBeyond = 56_000;
const skyHeadBytes = 22;

/**
 * Reads Beneath a Steel Sky: numbers, offsets (in units of 16 bytes if the highest bit is set) and
 * lengths; 8 bits at 11,025 Hz.
 */
function skySpeech(index: Buffer, archive: Buffer): Speech {
  const entries = index.readUInt32LE(0);
  return Array.from({ length: entries }, (_, entry) => {
    const at = 4 + 8 * entry;
    const offset = index.readUIntLE(at + 2, 3);
    const from = (offset & 0x7f_ff_ff) * (offset & 0x80_00_00 ? 16 : 1);
    const bytes = index.readUIntLE(at + 5, 3) & 0x3f_ff_ff;
    const samples = archive.subarray(from + skyHeadBytes, from + bytes);
    return [index.readUInt16LE(at), samples] as const;
  })
    .filter(([number, { length }]) => number >= firstSpeech && number < firstBeyond && length > 0)
    .map(
      ([number, samples]) =>
        [`${number}.wav`, wavOf(samples, { rateHz: 11_025, bits: 8 })] as const,
    );
}
