// Writes a text as a WebSocket frame, masked as a client must (RFC 6455, section 5.3). `ws` could
// do it, too. But it masks byte by byte, and passes header and text to the socket as two buffers,
// so sending a frame of audio takes a tenth longer.

import { randomFillSync } from 'node:crypto';

/** The header of a text of 126 to 65,535 bytes: two bytes, the length, and the mask. */
const headerBytes = 8;
const wordBytes = Int32Array.BYTES_PER_ELEMENT;
/** FIN, and the opcode of a text. */
const finalText = 0x81;
/** MASK, and the value which says that two bytes with the length follow. */
const maskedWithLength = 0x80 | 126;
/** A shorter text has a shorter header. */
const minCharacters = 126;
/** A frame of audio has about 390 characters. Longer texts are rare. */
const maxCharacters = 500;
/** In UTF-8. */
const maxBytesPerCharacter = 3;

/** Masks must be unpredictable, and random bytes cost less if we take many at once. */
const masks = new Int32Array(2_048);
let nextMask = masks.length;

export class TextFrame {
  readonly #bytes = Buffer.allocUnsafeSlow(headerBytes + maxCharacters * maxBytesPerCharacter);
  readonly #words = new Int32Array(this.#bytes.buffer);
  #frame = this.#bytes;

  /** True for texts that are as long as a frame of audio. */
  static canHold(text: string): boolean {
    return text.length >= minCharacters && text.length <= maxCharacters;
  }

  /** Returns the frame, which is valid until the next call. */
  write(text: string): Buffer {
    const textBytes = this.#bytes.write(text, headerBytes);
    const bytes = headerBytes + textBytes;
    const mask = takeMask();
    this.#bytes[0] = finalText;
    this.#bytes[1] = maskedWithLength;
    this.#bytes.writeUInt16BE(textBytes, 2);
    this.#words[1] = mask;
    const words = Math.ceil(bytes / wordBytes);
    for (let index = headerBytes / wordBytes; index < words; index += 1) {
      this.#words[index] = (this.#words[index] as number) ^ mask;
    }
    // Nearly all frames of a call have the same length.
    if (this.#frame.length !== bytes) this.#frame = this.#bytes.subarray(0, bytes);
    return this.#frame;
  }
}

function takeMask(): number {
  if (nextMask === masks.length) {
    randomFillSync(masks);
    nextMask = 0;
  }
  const mask = masks[nextMask] as number;
  nextMask += 1;
  return mask;
}
