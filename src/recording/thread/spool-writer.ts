// Writes one recording to the spool while its call lasts. The writes are synchronous, because this
// runs in a thread of its own: a stuck disk must not occupy the threads that the whole process
// shares for files and host names.

import {
  closeSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { channelCount, type RecordingMark, sampleRateHz } from '../recording-messages.ts';
import { headerName, segmentName } from './spool-folders.ts';
import type { SpoolHeader } from './spool-header.ts';
import {
  type RecordPlace,
  type SpoolKey,
  sealInPlace,
  sealRecord,
  segmentHeader,
} from './spool-records.ts';

/** Ten minutes of audio. What damages a segment's file affects no other. */
const maxSegmentBytes = 600 * sampleRateHz * channelCount;

export class SpoolWriter {
  readonly #folder: string;
  readonly #key: SpoolKey | undefined;
  #file: number | undefined;
  #segment = 0;
  #records = 0;
  #bytes = 0;

  /** @throws the error of the file system */
  constructor(folder: string, header: SpoolHeader, key: SpoolKey | undefined) {
    this.#folder = folder;
    this.#key = key;
    const created = mkdirSync(folder, { recursive: true, mode: 0o700 });
    try {
      writeFileSync(join(folder, headerName), JSON.stringify(header), { mode: 0o600, flag: 'wx' });
      this.#openSegment();
    } catch (error) {
      this.close();
      // Otherwise a full disk would leave a folder that nobody can finish. A folder that was there
      // before is another recording's.
      if (created !== undefined) rmSync(created, { recursive: true, force: true });
      throw error;
    }
  }

  /**
   * Appends a record. If it doesn't fit onto the disk, the segment ends with the previous record.
   *
   * @throws the error of the file system
   */
  append(mark: RecordingMark): void {
    this.#write(sealRecord(mark, this.#nextPlace(), this.#key));
  }

  /**
   * Appends audio, which lies in memory that has room for its record, and is overwritten.
   *
   * @throws the error of the file system
   */
  appendAudio(at: number, room: Buffer): void {
    this.#write(sealInPlace(room, { kind: 'audio', at }, this.#nextPlace(), this.#key));
  }

  #nextPlace(): RecordPlace {
    if (this.#bytes >= maxSegmentBytes) this.#openSegment();
    const place = { segment: this.#segment, index: this.#records };
    this.#records += 1;
    return place;
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }

  #openSegment(): void {
    this.close();
    this.#segment += 1;
    this.#records = 0;
    this.#bytes = 0;
    this.#file = openSync(join(this.#folder, segmentName(this.#segment)), 'wx', 0o600);
    this.#write(segmentHeader(this.#segment, this.#key !== undefined));
  }

  #write(content: Buffer): void {
    const file = this.#file;
    if (file === undefined) throw new Error('the segment is closed');
    try {
      for (let at = 0; at < content.length; ) at += writeSync(file, content, at);
    } catch (error) {
      this.#dropTorn(file);
      throw error;
    }
    this.#bytes += content.length;
  }

  /** Readers drop a torn record as well, so it doesn't matter if this fails. */
  #dropTorn(file: number): void {
    try {
      ftruncateSync(file, this.#bytes);
    } catch {
      // See above.
    }
  }
}
