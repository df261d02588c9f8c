// Positions in the event log, and their cursors. A cursor is an opaque string that we send as the
// `id` of server-sent events.

/**
 * The position after this event. An empty `callId` means the position before any of the
 * transaction's events.
 */
export type Position = {
  /** A PostgreSQL xid8 as text, because its 64 bits don't fit into a number. */
  readonly transactionId: string;
  readonly callId: string;
  readonly eventSequence: number;
};

export type Cursor = {
  readonly position: Position;
  /** Time of the position. We reject cursors that are older than the event retention. */
  readonly at: Date;
};

export function beforeTransaction(transactionId: string): Position {
  return { transactionId, callId: '', eventSequence: 0 };
}

/** Compares two positions, for use with `sort`. */
export function compare(a: Position, b: Position): number {
  const byTransaction = BigInt(a.transactionId) - BigInt(b.transactionId);
  if (byTransaction !== 0n) return byTransaction < 0n ? -1 : 1;
  // Call ids are ASCII and the database orders them by `collate "C"`, so this gives the same order.
  if (a.callId !== b.callId) return a.callId < b.callId ? -1 : 1;
  return a.eventSequence - b.eventSequence;
}

export function writeCursor({ position, at }: Cursor): string {
  const { transactionId, eventSequence, callId } = position;
  const text = `${transactionId}.${at.getTime()}.${eventSequence}.${callId}`;
  return Buffer.from(text, 'latin1').toString('base64url');
}

/** @returns undefined if the text isn't a cursor from this gateway */
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
