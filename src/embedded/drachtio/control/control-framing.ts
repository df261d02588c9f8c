// drachtio's frames, whose format is `<decimal length>#<payload>`. The length is in bytes, and the
// payload is a string with one character per byte.

/**
 * A frame contains one SIP message, and over TCP we accept messages of up to 256 KiB.
 * (drachtio-server silently stalls at 12 KiB.)
 */
export const maxFrameBytes = 256 * 1_024;

/** Six digits followed by `#`, e.g. "262144#". */
const maxLengthDigits = 6;

export type ControlFrame =
  | { readonly kind: 'frame'; readonly payload: string }
  | { readonly kind: 'broken' }
  /**
   * The frame is too long. We still read the message id from its first bytes, because our error
   * reply must repeat the id.
   */
  | { readonly kind: 'oversize'; readonly messageId: string };

export class FrameReader {
  #chunks: string[] = [];
  #buffered = 0;
  #wanted = 0;
  #length: number | undefined;

  push(chunk: string): ControlFrame[] {
    this.#chunks.push(chunk);
    this.#buffered += chunk.length;
    const frames: ControlFrame[] = [];
    // Don't join chunks until the frame may be complete. Otherwise we'd copy a large frame again
    // for every chunk.
    while (this.#buffered > 0 && this.#buffered >= this.#wanted) {
      const step = this.#step();
      if (step === 'more') break;
      if (step === 'again') continue;
      frames.push(step);
      if (step.kind !== 'frame') break;
    }
    return frames;
  }

  #step(): ControlFrame | 'more' | 'again' {
    const text = this.#chunks.join('');
    this.#chunks = [text];
    return this.#length === undefined ? this.#readLength(text) : this.#readPayload(text);
  }

  #readLength(text: string): ControlFrame | 'more' | 'again' {
    const mark = text.slice(0, maxLengthDigits + 1).indexOf('#');
    const digits = mark < 0 ? text.slice(0, maxLengthDigits + 1) : text.slice(0, mark);
    if (!/^\d*$/.test(digits) || mark === 0) return { kind: 'broken' };
    if (mark < 0) {
      if (digits.length > maxLengthDigits) return { kind: 'broken' };
      return 'more';
    }
    const length = Number(digits);
    if (length > maxFrameBytes) {
      const head = text.slice(mark + 1, mark + 101);
      return { kind: 'oversize', messageId: head.split('|')[0] ?? '' };
    }
    this.#length = length;
    this.#consume(text, mark + 1);
    this.#wanted = length;
    return this.#buffered >= length ? 'again' : 'more';
  }

  #readPayload(text: string): ControlFrame {
    const length = this.#length ?? 0;
    const payload = text.slice(0, length);
    this.#length = undefined;
    this.#wanted = 0;
    this.#consume(text, length);
    return { kind: 'frame', payload };
  }

  #consume(text: string, count: number): void {
    const rest = text.slice(count);
    this.#chunks = rest === '' ? [] : [rest];
    this.#buffered = rest.length;
  }
}

export function encodeFrame(payload: string): string {
  return `${payload.length}#${payload}`;
}
