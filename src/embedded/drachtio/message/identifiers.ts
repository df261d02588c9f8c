// Random identifiers. Tags and branches consist of 13 characters from an alphabet of 59. That's 76
// bits, which an off-path attacker can't guess.

import { randomBytes, randomUUID } from 'node:crypto';

const alphabet = '0123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';

export type Identifiers = {
  readonly tag: () => string;
  readonly branch: () => string;
  readonly uuid: () => string;
};

/**
 * Draws random bytes in bulk, because one system call per tag would cost more than the rest of the
 * message.
 */
export function createIdentifiers(): Identifiers {
  let pool = randomBytes(4_096);
  let offset = 0;
  const tag = (): string => {
    let text = '';
    while (text.length < 13) {
      if (offset >= pool.length) {
        pool = randomBytes(4_096);
        offset = 0;
      }
      const character = alphabet[(pool[offset] ?? 0) & 63];
      offset += 1;
      // Skip values beyond the alphabet to keep the distribution even.
      if (character !== undefined) text += character;
    }
    return text;
  };
  return { tag, branch: () => `z9hG4bK${tag()}`, uuid: () => randomUUID() };
}
