// Makes one file from a recording's segments, beside them: written, flushed to the disk and then
// renamed, so that the name never belongs to half a file. The metadata comes last; a recording with
// metadata is finished. Everything is synchronous (see spool-writer.ts), and in steps, between
// which the thread writes what the calls have recorded meanwhile.

import { createHash } from 'node:crypto';
import {
  closeSync,
  fsyncSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { FileEncryptor } from '../formats/encrypted-file.ts';
import { wavHeader } from '../formats/wav-header.ts';
import { channelCount, samplesPerMs, silentSample } from '../recording-messages.ts';
import { type RecordingMetadata, recordingMetadataSchema } from '../recording-metadata.ts';
import type { FinishFault, SpooledRecording } from '../recording-thread.ts';
import { audioName, headerName, metadataName, partSuffix, segmentOf } from './spool-folders.ts';
import { type SpoolHeader, spoolHeaderSchema } from './spool-header.ts';
import { SpoolReader } from './spool-reader.ts';
import { spoolKeyOf } from './spool-records.ts';
import { type Timeline, type TimelineGap, timelineOf } from './timeline.ts';

/** A step takes a few milliseconds. */
const stepBytes = 512 * 1024;
const silence = Buffer.alloc(64 * 1024, silentSample);

/**
 * Finishes the recording in a folder. Each step does a part of the work, and the last one returns
 * the result.
 */
export function* finishing(
  folder: string,
  contentKey: Uint8Array | undefined,
): Generator<void, SpooledRecording | FinishFault> {
  try {
    const header = readHeader(folder);
    if (typeof header === 'string') return { fault: 'spool-unusable', detail: header };
    if (header.encryption !== undefined && contentKey === undefined) {
      return { fault: 'key', detail: 'the recording is encrypted, and its key is missing' };
    }
    return yield* finishWith(folder, header, contentKey);
  } catch (error) {
    removeParts(folder);
    return faultOf(error);
  }
}

function* finishWith(
  folder: string,
  header: SpoolHeader,
  contentKey: Uint8Array | undefined,
): Generator<void, SpooledRecording | FinishFault> {
  const key = header.encryption && contentKey ? spoolKeyOf(contentKey) : undefined;
  const reader = new SpoolReader(folder, key);
  try {
    if (reader.isKeyWrong) {
      return { fault: 'key', detail: 'the recording is encrypted with another key' };
    }
    const timeline = timelineOf(reader.parts, header.fill);
    yield;
    const audio = yield* writeAudio(folder, header, contentKey, timeline);
    const metadata = metadataOf(header, timeline, audio);
    const metadataFile = metadataName(header.callId);
    writeWhole(join(folder, metadataFile), Buffer.from(`${JSON.stringify(metadata, null, 2)}\n`));
    flush(folder);
    removeSegments(folder);
    return spooledRecording(folder, header, metadata);
  } finally {
    reader.close();
  }
}

type WrittenAudio = {
  readonly name: string;
  readonly bytes: number;
  readonly sha256: string;
  readonly damaged: readonly TimelineGap[];
};

function* writeAudio(
  folder: string,
  { callId, encryption }: SpoolHeader,
  contentKey: Uint8Array | undefined,
  { pieces, fileSamples }: Timeline,
): Generator<void, WrittenAudio> {
  const name = audioName(callId, encryption !== undefined);
  const path = join(folder, name);
  const damaged: TimelineGap[] = [];
  const encryptor =
    encryption && contentKey ? new FileEncryptor({ ...encryption, callId, contentKey }) : undefined;
  const file = new HashedFile(`${path}${partSuffix}`, encryptor);
  try {
    file.add(wavHeader(fileSamples));
    let stepAt = 0;
    for (const piece of pieces) {
      if (piece.kind === 'silence') yield* addSilence(file, piece.samples * channelCount);
      else {
        const audio = piece.read();
        if (audio !== undefined) file.add(audio);
        else {
          const until = piece.at + Math.floor(piece.bytes / channelCount);
          damaged.push({ from: piece.at, until, reason: 'damaged' });
          yield* addSilence(file, piece.bytes);
        }
      }
      if (file.bytes - stepAt < stepBytes) continue;
      stepAt = file.bytes;
      yield;
    }
    const sha256 = file.finish();
    yield;
    renameSync(`${path}${partSuffix}`, path);
    return { name, bytes: file.bytes, sha256, damaged };
  } finally {
    file.close();
  }
}

function* addSilence(file: HashedFile, bytes: number): Generator<void> {
  for (let left = bytes; left > 0; left -= silence.length) {
    file.add(silence.subarray(0, Math.min(left, silence.length)));
    if (left > stepBytes) yield;
  }
}

/** A file that is written once from its beginning to its end, encrypted if there's an encryptor. */
class HashedFile {
  readonly #file: number;
  readonly #hash = createHash('sha256');
  readonly #encryptor: FileEncryptor | undefined;
  #isClosed = false;
  bytes = 0;

  constructor(path: string, encryptor: FileEncryptor | undefined) {
    this.#file = openSync(path, 'w', 0o600);
    this.#encryptor = encryptor;
    if (encryptor !== undefined) this.#write(encryptor.prefix);
  }

  add(content: Uint8Array): void {
    if (this.#encryptor === undefined) this.#write(content);
    else for (const chunk of this.#encryptor.push(content)) this.#write(chunk);
  }

  /** Flushes the file to the disk. Returns its SHA-256. */
  finish(): string {
    if (this.#encryptor !== undefined) this.#write(this.#encryptor.end());
    fsyncSync(this.#file);
    return this.#hash.digest('hex');
  }

  close(): void {
    if (!this.#isClosed) closeSync(this.#file);
    this.#isClosed = true;
  }

  #write(content: Uint8Array): void {
    writeAll(this.#file, content);
    this.#hash.update(content);
    this.bytes += content.length;
  }
}

function metadataOf(
  header: SpoolHeader,
  { pauses, gaps, samples, end }: Timeline,
  { name, bytes, sha256, damaged }: WrittenAudio,
): RecordingMetadata {
  const { callId, accountId, botId, startedAt, fill, encryption } = header;
  const reason = end === undefined ? 'end-unknown' : end.incomplete;
  const ms = (at: number): number => at / samplesPerMs;
  const iso = (at: number): string => new Date(startedAt + ms(at)).toISOString();
  const paused = pauses.reduce((sum, { from, until }) => sum + until - from, 0);
  return {
    ...{ version: 1, callId, accountId, botId, startedAt: iso(0), endedAt: iso(samples) },
    ...{ durationMs: ms(samples), pausedMs: ms(paused) },
    ...{ sampleRateHz: 8_000, encoding: 'mulaw', channels: ['heard', 'said'], fill },
    pauses: pauses.map(({ from, until, fileAt, by }) => ({
      ...{ fromMs: ms(from), untilMs: ms(until), fileMs: ms(fileAt) },
      ...{ from: iso(from), until: iso(until), by },
    })),
    gaps: [...gaps, ...damaged]
      .sort((one, other) => one.from - other.from)
      .map(({ from, until, reason: why }) => ({
        ...{ fromMs: ms(from), untilMs: ms(until), reason: why },
      })),
    ...{ file: name, bytes, sha256 },
    ...(encryption === undefined ? {} : { key: encryption.keyName }),
    incomplete: reason !== undefined,
    ...(reason === undefined ? {} : { reason }),
  };
}

export function spooledRecording(
  folder: string,
  header: SpoolHeader,
  metadata: RecordingMetadata,
): SpooledRecording {
  const { callId, accountId, botId, ownerId, startedAt } = header;
  const { durationMs, pausedMs, bytes, sha256, key, incomplete, file } = metadata;
  return {
    ...{ folder, callId, accountId, botId, ownerId, startedAt, durationMs, pausedMs },
    ...{ bytes, sha256, incomplete, fileName: file, metadataName: metadataName(callId), metadata },
    ...(key === undefined ? {} : { keyName: key }),
  };
}

/** @returns what's wrong, if the header is missing or damaged */
export function readHeader(folder: string): SpoolHeader | string {
  const content = readJson(join(folder, headerName));
  if (content === undefined) return `${headerName} is missing or damaged`;
  const header = spoolHeaderSchema.safeParse(content);
  return header.success ? header.data : `${headerName} is damaged, or of a later version`;
}

/** @returns undefined unless the recording is finished */
export function readFinished(folder: string, header: SpoolHeader): SpooledRecording | undefined {
  const content = readJson(join(folder, metadataName(header.callId)));
  const metadata = recordingMetadataSchema.safeParse(content);
  if (!metadata.success || metadata.data.callId !== header.callId) return undefined;
  const { file, bytes } = metadata.data;
  if (file !== audioName(header.callId, header.encryption !== undefined)) return undefined;
  const audio = statSync(join(folder, file), { throwIfNoEntry: false });
  if (audio?.size !== bytes) return undefined;
  return spooledRecording(folder, header, metadata.data);
}

/** Returns the fault for an error of the file system. */
export function faultOf(error: unknown): FinishFault {
  const code = (error as NodeJS.ErrnoException | undefined)?.code;
  // EFBIG: the process has a limit on the size of files, which is a full disk to us.
  const isFull = code === 'ENOSPC' || code === 'EDQUOT' || code === 'EFBIG';
  return { fault: isFull ? 'disk-full' : 'spool-unusable', detail: String(error) };
}

function writeWhole(path: string, content: Buffer): void {
  const file = openSync(`${path}${partSuffix}`, 'w', 0o600);
  try {
    writeAll(file, content);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(`${path}${partSuffix}`, path);
}

function writeAll(file: number, content: Uint8Array): void {
  for (let at = 0; at < content.length; ) at += writeSync(file, content, at);
}

/** Flushes the names in a folder. */
function flush(folder: string): void {
  const file = openSync(folder, 'r');
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

function removeSegments(folder: string): void {
  for (const name of readdirSync(folder)) {
    if (segmentOf(name) !== undefined) rmSync(join(folder, name));
  }
}

/** Makes room again. What can't be removed is overwritten by the next attempt. */
function removeParts(folder: string): void {
  try {
    for (const name of readdirSync(folder)) {
      if (name.endsWith(partSuffix)) rmSync(join(folder, name), { force: true });
    }
  } catch {
    // See above.
  }
}

function readJson(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    return undefined;
  }
}
