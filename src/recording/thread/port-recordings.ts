// The recordings that one media worker sends over its port. Whatever happens to a recording here,
// the call isn't affected, and what has been written is finished.

import type { RecordingFault } from '../../calls/recording/recording.ts';
import {
  type BeginPart,
  channelCount,
  type FromRecordingThread,
  type PostedAudio,
  type RecordingMark,
  recordHeaderBytes,
  recordTailBytes,
  type ToRecordingThread,
} from '../recording-messages.ts';
import { faultOf } from './finishing.ts';
import { recordingFolder } from './spool-folders.ts';
import type { SpoolHeader } from './spool-header.ts';
import { spoolKeyOf } from './spool-records.ts';
import { SpoolWriter } from './spool-writer.ts';

/** A recording whose segments are complete. */
export type EndedRecording = {
  readonly folder: string;
  readonly callId: string;
  readonly contentKey: Uint8Array | undefined;
};

export type PortListener = {
  post(message: FromRecordingThread): void;
  onBegun(folder: string): void;
  /** Nothing more is written to the folder. */
  onEnded(recording: EndedRecording): void;
  onFault(callId: string, fault: RecordingFault, detail: string): void;
};

type Blocks = ToRecordingThread['blocks'];

type LiveRecording = EndedRecording & {
  readonly writer: SpoolWriter;
  /** Position after the last part that was written. */
  at: number;
};

export class PortRecordings {
  readonly #spool: string;
  readonly #ownerId: string;
  readonly #listener: PortListener;
  readonly #live = new Map<number, LiveRecording>();

  constructor(spool: string, ownerId: string, listener: PortListener) {
    this.#spool = spool;
    this.#ownerId = ownerId;
    this.#listener = listener;
  }

  receive({ parts, bytes, blocks }: ToRecordingThread): void {
    for (const { id, part } of parts) {
      if (part.kind === 'begin') this.#begin(id, part);
      else this.#append(id, part, blocks);
    }
    this.#listener.post({ kind: 'handled', bytes, blocks });
  }

  /** Ends all recordings, because the media worker is gone. */
  close(): void {
    for (const [id, { at }] of [...this.#live]) {
      this.#append(id, { kind: 'end', at, end: { incomplete: 'media-failed' } }, []);
    }
  }

  #begin(id: number, { start, startedAt }: BeginPart): void {
    const { callId, accountId, botId, from, fill, encryption } = start;
    const folder = recordingFolder(this.#spool, this.#ownerId, callId);
    const header: SpoolHeader = {
      ...{ version: 1, callId, accountId, botId, ownerId: this.#ownerId, startedAt, from, fill },
      ...(encryption && { encryption: withoutContentKey(encryption) }),
    };
    const contentKey = encryption?.contentKey;
    try {
      const writer = new SpoolWriter(folder, header, contentKey && spoolKeyOf(contentKey));
      this.#live.set(id, { folder, callId, contentKey, writer, at: 0 });
      this.#listener.onBegun(folder);
      this.#listener.post({ kind: 'begun', id });
    } catch (error) {
      const { fault, detail } = faultOf(error);
      this.#listener.post({ kind: 'failed', id, reason: fault });
      this.#listener.onFault(callId, fault, detail);
    }
  }

  #append(id: number, part: RecordingMark | PostedAudio, blocks: Blocks): void {
    const live = this.#live.get(id);
    if (live === undefined) return;
    try {
      if (part.kind === 'audio') live.writer.appendAudio(part.at, roomOf(part, blocks));
      else live.writer.append(part);
      live.at = endOf(part);
    } catch (error) {
      const { fault, detail } = faultOf(error);
      this.#listener.post({ kind: 'failed', id, reason: fault });
      this.#listener.onFault(live.callId, fault, detail);
      this.#end(id, live);
      return;
    }
    if (part.kind === 'end') this.#end(id, live);
  }

  #end(id: number, { writer, folder, callId, contentKey }: LiveRecording): void {
    this.#live.delete(id);
    writer.close();
    this.#listener.onEnded({ folder, callId, contentKey });
  }
}

function withoutContentKey({
  keyName,
  sealedContentKey,
  wrapped,
}: NonNullable<BeginPart['start']['encryption']>): NonNullable<SpoolHeader['encryption']> {
  return { keyName, sealedContentKey, wrapped };
}

/** Returns the audio's memory, with room for the rest of its record. */
function roomOf({ block, start, bytes }: PostedAudio, blocks: Blocks): Buffer {
  const memory = blocks[block];
  if (memory === undefined) throw new Error('the message lacks a block');
  return Buffer.from(memory.buffer, start, recordHeaderBytes + bytes + recordTailBytes);
}

function endOf(part: RecordingMark | PostedAudio): number {
  if (part.kind === 'audio') return part.at + part.bytes / channelCount;
  return part.kind === 'gap' ? part.until : part.at;
}
