// The records of a segment in the spool (see src/recording/README.md). A segment begins with
// `| magic 8 | segment number 4 | flags 4 |`, and each record is
// `| kind 1 | 0 | at 6 | length 4 | CRC-32 of these 4 | payload | check |`. All numbers are
// big-endian. The check is the payload's CRC-32 or, if the segment is encrypted, the tag of
// AES-256-GCM, whose additional data is the record's header. Nothing here throws on a damaged file.

import { createCipheriv, createDecipheriv, hkdfSync } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { type RecordingPause, recordingPauses } from '../../calls/recording/recording.ts';
import {
  type RecordingEnd,
  type RecordingMark,
  recordHeaderBytes,
  recordTailBytes,
  samplesPerMs,
} from '../recording-messages.ts';
import { gapReasons } from '../recording-metadata.ts';

const magic = Buffer.from('OFHKSPL1', 'latin1');
export const segmentHeaderBytes = 16;
const crcBytes = 4;
const tagBytes = 16;
const encryptedFlag = 1;
const kinds = ['audio', 'gap', 'pause', 'resume', 'end'] as const;
/** A record is a second of audio, or the audio until a pause. Anything longer is damaged. */
export const maxPayloadBytes = 1024 * 1024;
/** No call lasts a year. */
const maxSamples = 366 * 86_400_000 * samplesPerMs;

export type RecordKind = (typeof kinds)[number];

export type RecordHeader = {
  readonly kind: RecordKind;
  /** Position in samples from the recording's beginning. */
  readonly at: number;
  readonly payloadBytes: number;
};

/** Encrypts the spool of one recording. */
export type SpoolKey = { readonly key: Buffer };

/** The key's purpose is part of its derivation, so that the file and the spool share no key. */
export function spoolKeyOf(contentKey: Uint8Array): SpoolKey {
  return { key: Buffer.from(hkdfSync('sha256', contentKey, '', 'offhook recording spool', 32)) };
}

export function checkBytesOf(isEncrypted: boolean): number {
  return isEncrypted ? tagBytes : crcBytes;
}

export function segmentHeader(segment: number, isEncrypted: boolean): Buffer {
  const header = Buffer.alloc(segmentHeaderBytes);
  magic.copy(header);
  header.writeUInt32BE(segment, 8);
  header.writeUInt32BE(isEncrypted ? encryptedFlag : 0, 12);
  return header;
}

/** @returns undefined if the bytes aren't a segment's header */
export function readSegmentHeader(
  header: Buffer,
): { readonly segment: number; readonly isEncrypted: boolean } | undefined {
  if (header.length < segmentHeaderBytes || !header.subarray(0, 8).equals(magic)) return undefined;
  const flags = header.readUInt32BE(12);
  if (flags > encryptedFlag) return undefined;
  return { segment: header.readUInt32BE(8), isEncrypted: flags === encryptedFlag };
}

/** @returns undefined if the header is damaged */
export function readRecordHeader(bytes: Buffer): RecordHeader | undefined {
  if (bytes.length < recordHeaderBytes) return undefined;
  if (crc32(bytes.subarray(0, 12)) !== bytes.readUInt32BE(12)) return undefined;
  const kind = kinds[(bytes[0] as number) - 1];
  const at = bytes.readUIntBE(2, 6);
  const payloadBytes = bytes.readUInt32BE(8);
  if (kind === undefined || at > maxSamples || payloadBytes > maxPayloadBytes) return undefined;
  return { kind, at, payloadBytes };
}

/** Where a record is: its nonce, which must never be used twice with the same key. */
export type RecordPlace = { readonly segment: number; readonly index: number };

export function sealRecord(
  mark: RecordingMark,
  place: RecordPlace,
  key: SpoolKey | undefined,
): Buffer {
  const payload = payloadOf(mark);
  const room = Buffer.alloc(recordHeaderBytes + payload.length + recordTailBytes);
  payload.copy(room, recordHeaderBytes);
  return sealInPlace(room, mark, place, key);
}

/**
 * Makes a record of a payload that has room for the record's header before it, and for the longest
 * check after it.
 */
export function sealInPlace(
  room: Buffer,
  { kind, at }: Pick<RecordHeader, 'kind' | 'at'>,
  place: RecordPlace,
  key: SpoolKey | undefined,
): Buffer {
  const checkAt = room.length - recordTailBytes;
  const payload = room.subarray(recordHeaderBytes, checkAt);
  room[0] = kinds.indexOf(kind) + 1;
  room[1] = 0;
  room.writeUIntBE(at, 2, 6);
  room.writeUInt32BE(payload.length, 8);
  room.writeUInt32BE(crc32(room.subarray(0, 12)), 12);
  if (key === undefined) {
    room.writeUInt32BE(crc32(payload), checkAt);
    return room.subarray(0, checkAt + crcBytes);
  }
  const cipher = createCipheriv('aes-256-gcm', key.key, nonceOf(place));
  cipher.setAAD(room.subarray(0, recordHeaderBytes));
  cipher.update(payload).copy(payload);
  cipher.final();
  cipher.getAuthTag().copy(room, checkAt);
  return room;
}

/**
 * Checks and decrypts a record's payload, which is followed by its check.
 *
 * @returns undefined if it's damaged
 */
export function openRecord(
  header: Buffer,
  stored: Buffer,
  place: RecordPlace,
  key: SpoolKey | undefined,
): Buffer | undefined {
  if (key === undefined) {
    const payload = stored.subarray(0, -crcBytes);
    return crc32(payload) === stored.readUInt32BE(payload.length) ? payload : undefined;
  }
  const decipher = createDecipheriv('aes-256-gcm', key.key, nonceOf(place), {
    authTagLength: tagBytes,
  });
  decipher.setAAD(header);
  decipher.setAuthTag(stored.subarray(-tagBytes));
  const payload = decipher.update(stored.subarray(0, -tagBytes));
  try {
    decipher.final();
    return payload;
  } catch {
    return undefined;
  }
}

/** @returns undefined if the payload of a record other than audio is damaged */
export function readPart({ kind, at }: RecordHeader, payload: Buffer): RecordingMark | undefined {
  if (kind === 'resume') return { kind, at };
  const content = readJson(payload);
  if (kind === 'audio' || content === undefined) return undefined;
  if (kind === 'end') return { kind, at, end: content as RecordingEnd };
  if (kind === 'pause') {
    const by = recordingPauses.find((known: RecordingPause) => known === content['by']);
    return by && { kind, at, by };
  }
  const [until, reason] = [content['until'], gapReasons.find((each) => each === content['reason'])];
  const isGap = Number.isSafeInteger(until) && (until as number) >= at && reason !== undefined;
  return isGap ? { kind, at, until: Math.min(until as number, maxSamples), reason } : undefined;
}

function payloadOf(mark: RecordingMark): Buffer {
  switch (mark.kind) {
    case 'gap':
      return Buffer.from(JSON.stringify({ until: mark.until, reason: mark.reason }));
    case 'pause':
      return Buffer.from(JSON.stringify({ by: mark.by }));
    case 'resume':
      return Buffer.alloc(0);
    case 'end':
      return Buffer.from(JSON.stringify(mark.end));
  }
}

function readJson(payload: Buffer): Readonly<Record<string, unknown>> | undefined {
  try {
    const content: unknown = JSON.parse(payload.toString('utf8'));
    const isObject = typeof content === 'object' && content !== null && !Array.isArray(content);
    return isObject ? (content as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

function nonceOf({ segment, index }: RecordPlace): Buffer {
  const nonce = Buffer.alloc(12);
  nonce.writeUInt32BE(segment, 0);
  nonce.writeUIntBE(index, 6, 6);
  return nonce;
}
