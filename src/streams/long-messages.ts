// Leaves messages that are too long out of what a bot sends, before they are read: the WebSocket library would close the
// connection over one, and a call is not to break off for it. Follows the frames of RFC 6455 (5.2) as far as their lengths go.

/** What says that it is longer has no length that could be waited for: it is left to the library, which refuses it. */
const mostLeftOutBytes = 2 ** 32;
const longestHeadBytes = 10;
/** Far above what a server answers an upgrade with. */
const longestResponseLength = 64 * 1_024;
/** FIN and the opcode of a continuation, with nothing in it: the end of a message whose beginning was passed on. */
const emptyEnd = Buffer.of(0x80, 0x00);
const upgraded = /^HTTP\/1\.1 101 /;
const interim = /^HTTP\/1\.1 1/;

type State =
  /** The answer to the upgrade; what there is of it. */
  | { readonly kind: 'response'; readonly text: string }
  /** A frame's first bytes; how many of them there are. */
  | { readonly kind: 'head'; readonly count: number }
  | { readonly kind: 'payload'; readonly left: number; readonly isLeftOut: boolean }
  /** No WebSocket, or none whose lengths can be believed. */
  | { readonly kind: 'raw' };

const nextFrame: State = { kind: 'head', count: 0 };

export class LongMessages {
  readonly #maxBytes: number;
  readonly #onLeftOut: (isBegun: boolean) => void;
  readonly #head = Buffer.alloc(longestHeadBytes);
  #state: State = { kind: 'response', text: '' };
  /** Of the message under way: what was passed on. */
  #messageBytes = 0;
  #isLeavingOut = false;
  /** Of the chunk: from here on it is passed on next; what is to be passed on before. */
  #from = 0;
  #passed: Buffer[] = [];

  /** `onLeftOut`: told of each; `isBegun` where its beginning was passed on, which is then all there is of it. */
  constructor(maxBytes: number, onLeftOut: (isBegun: boolean) => void) {
    this.#maxBytes = maxBytes;
    this.#onLeftOut = onLeftOut;
  }

  /** What is to be read of a chunk; mostly the chunk itself. */
  pass(chunk: Buffer): readonly Buffer[] {
    this.#from = 0;
    this.#passed = [];
    for (let at = 0; at < chunk.length; ) {
      const state = this.#state;
      if (state.kind === 'raw') break;
      if (state.kind === 'response') at = this.#readResponse(chunk, at, state.text);
      else if (state.kind === 'head') at = this.#readHead(chunk, at, state.count);
      else at = this.#readPayload(chunk, at, state);
    }
    this.#flush(chunk, chunk.length);
    return this.#passed;
  }

  #readResponse(chunk: Buffer, at: number, before: string): number {
    const text = before + chunk.toString('latin1', at);
    const end = text.indexOf('\r\n\r\n');
    if (end === -1) {
      this.#state =
        text.length > longestResponseLength ? { kind: 'raw' } : { kind: 'response', text };
      return chunk.length;
    }
    if (upgraded.test(text)) this.#state = nextFrame;
    else this.#state = interim.test(text) ? { kind: 'response', text: '' } : { kind: 'raw' };
    return at + end + 4 - before.length;
  }

  #readHead(chunk: Buffer, start: number, before: number): number {
    let at = start;
    let count = before;
    while (at < chunk.length && count < headBytes(this.#head, count)) {
      this.#head[count] = chunk[at] as number;
      count += 1;
      at += 1;
    }
    if (count < headBytes(this.#head, count)) {
      // Kept back until it is known what it begins.
      this.#flush(chunk, start);
      this.#from = at;
      this.#state = { kind: 'head', count };
      return at;
    }
    const left = payloadBytes(this.#head);
    const verdict = this.#judge(left);
    if (verdict === 'pass') {
      if (before > 0) this.#insert(chunk, start, at, Buffer.from(this.#head.subarray(0, count)));
    } else {
      this.#insert(chunk, start, at, verdict === 'end' ? emptyEnd : undefined);
    }
    if (this.#state.kind !== 'raw') {
      this.#state =
        left === 0 ? nextFrame : { kind: 'payload', left, isLeftOut: verdict !== 'pass' };
    }
    return at;
  }

  #readPayload(
    chunk: Buffer,
    start: number,
    { left, isLeftOut }: Extract<State, { kind: 'payload' }>,
  ): number {
    const count = Math.min(left, chunk.length - start);
    if (isLeftOut) this.#from = start + count;
    this.#state = count === left ? nextFrame : { kind: 'payload', left: left - count, isLeftOut };
    return start + count;
  }

  /** What becomes of the frame whose head was read. */
  #judge(length: number): 'pass' | 'leaveOut' | 'end' {
    const first = this.#head[0] as number;
    const isLast = (first & 0x80) !== 0;
    const opcode = first & 0x0f;
    if (opcode >= 0x08) return 'pass';
    if (opcode !== 0) {
      this.#messageBytes = 0;
      this.#isLeavingOut = false;
    }
    if (length > mostLeftOutBytes) {
      this.#state = { kind: 'raw' };
      return 'pass';
    }
    if (this.#isLeavingOut) {
      this.#isLeavingOut = !isLast;
      return 'leaveOut';
    }
    this.#messageBytes += length;
    if (this.#messageBytes <= this.#maxBytes) return 'pass';
    this.#isLeavingOut = !isLast;
    const isBegun = opcode === 0;
    this.#onLeftOut(isBegun);
    return isBegun ? 'end' : 'leaveOut';
  }

  /** In place of a part of the chunk. */
  #insert(chunk: Buffer, start: number, end: number, bytes: Buffer | undefined): void {
    this.#flush(chunk, start);
    if (bytes !== undefined) this.#passed.push(bytes);
    this.#from = end;
  }

  #flush(chunk: Buffer, end: number): void {
    if (this.#from >= end) return;
    const isWhole = this.#from === 0 && end === chunk.length;
    this.#passed.push(isWhole ? chunk : chunk.subarray(this.#from, end));
    this.#from = end;
  }
}

/** As far as is known by its first `count` bytes. */
function headBytes(head: Buffer, count: number): number {
  if (count < 2) return 2;
  const length = (head[1] as number) & 0x7f;
  return length === 127 ? longestHeadBytes : length === 126 ? 4 : 2;
}

/** With the mask, which a server must not use (5.1). */
function payloadBytes(head: Buffer): number {
  const second = head[1] as number;
  const length = second & 0x7f;
  const maskBytes = (second & 0x80) === 0 ? 0 : 4;
  if (length === 127) return head.readUInt32BE(2) * 2 ** 32 + head.readUInt32BE(6) + maskBytes;
  return (length === 126 ? head.readUInt16BE(2) : length) + maskBytes;
}
