// Reads a recording's segments: first an index of all records, then the audio, one record at a
// time. A damaged record header ends its segment, because what follows can't be found.

import { closeSync, fstatSync, openSync, readdirSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { type RecordingMark, recordHeaderBytes } from '../recording-messages.ts';
import { segmentOf } from './spool-folders.ts';
import {
  checkBytesOf,
  openRecord,
  type RecordHeader,
  readPart,
  readRecordHeader,
  readSegmentHeader,
  type SpoolKey,
  segmentHeaderBytes,
} from './spool-records.ts';

/** Audio that hasn't been read yet. */
export type StoredAudio = {
  readonly kind: 'stored';
  readonly at: number;
  readonly bytes: number;
  /** @returns undefined if the audio is damaged */
  read(): Buffer | undefined;
};

export type StoredPart = StoredAudio | RecordingMark;

/** The open segments of one recording. */
export class SpoolReader {
  readonly #files: number[] = [];
  readonly #key: SpoolKey | undefined;
  readonly parts: readonly StoredPart[];

  /** @throws the error of the file system */
  constructor(folder: string, key: SpoolKey | undefined) {
    this.#key = key;
    const segments = readdirSync(folder)
      .flatMap((name) => {
        const segment = segmentOf(name);
        return segment === undefined ? [] : [{ name, segment }];
      })
      .sort((one, other) => one.segment - other.segment);
    try {
      this.parts = segments.flatMap(({ name }) => [...this.#index(join(folder, name))]);
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** Returns true if the key opens none of the first records. */
  get isKeyWrong(): boolean {
    if (this.#key === undefined) return false;
    const first = this.parts.flatMap((part) => (part.kind === 'stored' ? [part] : [])).slice(0, 3);
    return first.length > 0 && first.every((part) => part.read() === undefined);
  }

  close(): void {
    for (const file of this.#files.splice(0)) closeSync(file);
  }

  *#index(path: string): Generator<StoredPart> {
    const file = openSync(path, 'r');
    this.#files.push(file);
    const size = fstatSync(file).size;
    const header = readSegmentHeader(readAt(file, 0, segmentHeaderBytes));
    // The key belongs to the whole recording.
    if (header === undefined || header.isEncrypted !== (this.#key !== undefined)) return;
    const checkBytes = checkBytesOf(header.isEncrypted);
    let offset = segmentHeaderBytes;
    for (let index = 0; ; index += 1) {
      const bytes = readAt(file, offset, recordHeaderBytes);
      const record = readRecordHeader(bytes);
      const next = offset + recordHeaderBytes + (record?.payloadBytes ?? 0) + checkBytes;
      if (record === undefined || next > size) return;
      const payloadAt = offset + recordHeaderBytes;
      const read = (): Buffer | undefined => {
        const stored = readAt(file, payloadAt, record.payloadBytes + checkBytes);
        return stored.length < record.payloadBytes + checkBytes
          ? undefined
          : openRecord(bytes, stored, { segment: header.segment, index }, this.#key);
      };
      yield* partOf(record, read);
      offset = next;
    }
  }
}

function* partOf(record: RecordHeader, read: () => Buffer | undefined): Generator<StoredPart> {
  const { kind, at, payloadBytes } = record;
  if (kind === 'audio') {
    yield { kind: 'stored', at, bytes: payloadBytes, read };
    return;
  }
  const payload = read();
  const part = payload && readPart(record, payload);
  if (part !== undefined) yield part;
  // A pause that can't be read is still a pause.
  else if (kind === 'pause') yield { kind, at, by: 'command' };
}

function readAt(file: number, offset: number, count: number): Buffer {
  const bytes = Buffer.allocUnsafe(count);
  let length = 0;
  while (length < count) {
    const read = readSync(file, bytes, length, count - length, offset + length);
    if (read === 0) break;
    length += read;
  }
  return bytes.subarray(0, length);
}
