// An account's sounds as its apps see them: files come in, and what can be played is kept.

import type { Converter } from './converter.ts';
import type { PutSound, SoundStore } from './sound-store.ts';

export type SoundLibrary = Pick<SoundStore, 'list' | 'find' | 'remove'> & {
  /** `unreadable`: in words, what is wrong with the file. */
  put(
    accountId: string,
    name: string,
    file: Buffer,
  ): Promise<PutSound | { readonly kind: 'unreadable'; readonly problem: string }>;
};

export function createSoundLibrary(store: SoundStore, converter: Converter): SoundLibrary {
  return {
    list: (accountId) => store.list(accountId),
    find: (accountId, name) => store.find(accountId, name),
    remove: (accountId, name) => store.remove(accountId, name),
    async put(accountId, name, file) {
      const converted = await converter.convert(file);
      if (!converted.ok) return { kind: 'unreadable', problem: converted.problem };
      return await store.put(accountId, name, converted.mulaw);
    },
  };
}
