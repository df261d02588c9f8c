// A place in the log of events, and how a reader carries it: opaque, as the `id` of a server-sent event.

/** After this event; or before every event of `transactionId`, where there is no call. */
export type Position = {
  /** An xid8: grows for ever, and does not fit into a number. */
  readonly transactionId: string;
  readonly callId: string;
  readonly eventSequence: number;
};

export type Cursor = {
  readonly position: Position;
  /** When what stands before it was stored, or earlier. */
  readonly at: Date;
};

export function beforeTransaction(transactionId: string): Position {
  return { transactionId, callId: '', eventSequence: 0 };
}

/** Below, at or above 0, as `sort` has it. */
export function compare(a: Position, b: Position): number {
  const byTransaction = BigInt(a.transactionId) - BigInt(b.transactionId);
  if (byTransaction !== 0n) return byTransaction < 0n ? -1 : 1;
  // As the database orders them, by `collate "C"`: call ids are ASCII.
  if (a.callId !== b.callId) return a.callId < b.callId ? -1 : 1;
  return a.eventSequence - b.eventSequence;
}

export function writeCursor({ position, at }: Cursor): string {
  const { transactionId, eventSequence, callId } = position;
  const text = `${transactionId}.${at.getTime()}.${eventSequence}.${callId}`;
  return Buffer.from(text, 'latin1').toString('base64url');
}

/** Undefined: it is none of ours. */
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
