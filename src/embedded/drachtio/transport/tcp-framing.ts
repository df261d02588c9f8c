// Divides a TCP byte stream into SIP messages, based on Content-Length (RFC 3261 section 18.3).

import { parseDecimal } from '../message/sip-grammar.ts';
import { findBlankLine } from '../message/sip-message.ts';

/**
 * Limit for head and body together. SIP over TCP doesn't transport media, so 256 KiB is plenty for
 * any MESSAGE or NOTIFY.
 */
export const maxStreamMessageBytes = 256 * 1_024;

export type FramedItem =
  | { readonly kind: 'message'; readonly text: string }
  /**
   * A double CRLF keeps a NAT binding open, and its sender expects a single CRLF in return (RFC
   * 5626 section 3.5.1).
   */
  | { readonly kind: 'ping' }
  /** We can't find the start of the next message in the stream any more. */
  | { readonly kind: 'broken'; readonly why: string };

export class StreamFramer {
  #buffer = '';
  #scanned = 0;

  get pendingBytes(): number {
    return this.#buffer.length;
  }

  push(chunk: string): FramedItem[] {
    this.#buffer += chunk;
    const items: FramedItem[] = [];
    for (;;) {
      const item = this.#next();
      if (item === undefined) return items;
      items.push(item);
      if (item.kind === 'broken') {
        this.#buffer = '';
        return items;
      }
    }
  }

  #next(): FramedItem | undefined {
    const keepAlive = this.#skipBlankLines();
    if (keepAlive) return { kind: 'ping' };
    // The blank line can only be completed by new bytes, so start just before them. Otherwise, if
    // the stream is slow, we'd scan the same bytes over and over.
    const blank = findBlankLine(this.#buffer, Math.max(0, this.#scanned - 3));
    if (blank === undefined) {
      this.#scanned = this.#buffer.length;
      return this.#buffer.length > maxStreamMessageBytes
        ? { kind: 'broken', why: 'headers too long' }
        : undefined;
    }
    const bodyBytes = contentLength(this.#buffer.slice(0, blank.head));
    if (bodyBytes === undefined) return { kind: 'broken', why: 'bad Content-Length' };
    const total = blank.body + bodyBytes;
    if (total > maxStreamMessageBytes) return { kind: 'broken', why: 'message too long' };
    if (this.#buffer.length < total) return undefined;
    const text = this.#buffer.slice(0, total);
    this.#buffer = this.#buffer.slice(total);
    this.#scanned = 0;
    return { kind: 'message', text };
  }

  /** Removes blank lines, and returns true if they were a complete keep-alive. */
  #skipBlankLines(): boolean {
    if (this.#buffer.startsWith('\r\n\r\n')) {
      this.#buffer = this.#buffer.slice(4);
      this.#scanned = 0;
      return true;
    }
    if (this.#buffer.startsWith('\r\n') && this.#buffer.length > 2 && this.#buffer[2] !== '\r') {
      this.#buffer = this.#buffer.slice(2);
      this.#scanned = 0;
    }
    return false;
  }
}

/**
 * Reads Content-Length. The RFC requires it over TCP, but if it's missing, we assume that there's
 * no body. Returns undefined if the value is invalid. We also reject two different values, because
 * they're a sign of an attack.
 */
function contentLength(head: string): number | undefined {
  let found: number | undefined;
  let position = 0;
  while (position < head.length) {
    const newline = head.indexOf('\n', position);
    const end = newline < 0 ? head.length : newline;
    const value = contentLengthValue(head, position, end);
    if (value !== undefined) {
      const length = parseDecimal(value.trim(), 9);
      if (length === undefined || (found !== undefined && found !== length)) return undefined;
      found = length;
    }
    position = end + 1;
  }
  return found ?? 0;
}

function contentLengthValue(head: string, start: number, end: number): string | undefined {
  const first = head.charCodeAt(start) | 0x20;
  if (first !== 0x63 && first !== 0x6c) return undefined;
  const colon = head.indexOf(':', start);
  if (colon < 0 || colon >= end) return undefined;
  const name = head.slice(start, colon).trim().toLowerCase();
  return name === 'content-length' || name === 'l' ? head.slice(colon + 1, end) : undefined;
}
