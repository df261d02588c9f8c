// Positions in the event log, and their cursors. A cursor is an opaque text that is sent as the
// `id` of server-sent events.

/**
 * The position after this event. An empty `callId` means the position before all events of
 * `transactionId`.
 */
export type Position = {
  /** An xid8 of PostgreSQL as text: its 64 bits do not fit into a number. */
  readonly transactionId: string;
  readonly callId: string;
  readonly eventSequence: number;
};

export type Cursor = {
  readonly position: Position;
  /** Time of the position. A cursor that is older than the events' retention is not accepted. */
  readonly at: Date;
};

export function beforeTransaction(transactionId: string): Position {
  return { transactionId, callId: '', eventSequence: 0 };
}

/** Compares two positions, as `sort` expects it. */
export function compare(a: Position, b: Position): number {
  const byTransaction = BigInt(a.transactionId) - BigInt(b.transactionId);
  if (byTransaction !== 0n) return byTransaction < 0n ? -1 : 1;
  // The database orders call ids by `collate "C"`, and they are ASCII.
  if (a.callId !== b.callId) return a.callId < b.callId ? -1 : 1;
  return a.eventSequence - b.eventSequence;
}

export function writeCursor({ position, at }: Cursor): string {
  const { transactionId, eventSequence, callId } = position;
  const text = `${transactionId}.${at.getTime()}.${eventSequence}.${callId}`;
  return Buffer.from(text, 'latin1').toString('base64url');
}

/** @returns undefined if the text is not a cursor of this gateway */
export function readCursor(text: string): Cursor | undefined {
  const [, transactionId, at, eventSequence, callId] =
    /^(\d{1,19})\.(\d{1,14})\.(\d{1,9})\.((?:call-[0-9A-Za-z-]{1,64})?)$/.exec(
      Buffer.from(text.slice(0, 256), 'base64url').toString('latin1'),
    ) ?? [];
  if (transactionId === undefined || callId === undefined) return undefined;
  return {
    position: { transactionId, callId, eventSequence: Number(eventSequence) },
    at: new Date(Number(at)),
  };
}
