// Random identifiers. Tags and branches consist of 13 characters from a 59-character alphabet,
// which makes 76 bits, so an off-path attacker can't guess them.

import { randomBytes, randomUUID } from 'node:crypto';

const alphabet = '0123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';

export type Identifiers = {
  readonly tag: () => string;
  readonly branch: () => string;
  readonly uuid: () => string;
};

/**
 * Requests random bytes in bulk, because a system call for each tag would be more expensive than
 * the rest of the message.
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
      // Skip values beyond the alphabet, because otherwise some characters would be more likely
      // than others.
      if (character !== undefined) text += character;
    }
    return text;
  };
  return { tag, branch: () => `z9hG4bK${tag()}`, uuid: () => randomUUID() };
}
