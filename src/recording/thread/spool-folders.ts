// The names in the spool: `<owner>/<call>/` with `header.json`, the segments and, once it's
// finished, the recording and its metadata.

import { join } from 'node:path';

export const headerName = 'header.json';
export const partSuffix = '.part';
const segmentPattern = /^(\d{6,})\.segment$/;

/** Returns the folder of a recording. The ids come from outside, so they're encoded. */
export function recordingFolder(spool: string, ownerId: string, callId: string): string {
  return join(spool, folderName(ownerId), folderName(callId));
}

function folderName(id: string): string {
  return encodeURIComponent(id).replaceAll('.', '%2E');
}

export function segmentName(segment: number): string {
  return `${String(segment).padStart(6, '0')}.segment`;
}

/** @returns undefined if the file isn't a segment */
export function segmentOf(name: string): number | undefined {
  const [, number] = segmentPattern.exec(name) ?? [];
  return number === undefined ? undefined : Number(number);
}

export function audioName(callId: string, isEncrypted: boolean): string {
  return `${folderName(callId)}.wav${isEncrypted ? '.enc' : ''}`;
}

export function metadataName(callId: string): string {
  return `${folderName(callId)}.json`;
}
