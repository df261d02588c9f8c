// Loads a sound for a call. The sound is either one of the account's stored sounds, which we cache
// until it's replaced, or it comes from a URL.

import { LRUCache } from 'lru-cache';
import type { Sound } from '../calls/playback/playback.ts';
import { soundPlaceOf } from '../calls/playback/sound-reference.ts';
import type { SoundPort, SoundResult } from '../calls/ports.ts';
import type { Logger } from '../lib/logger.ts';
import { toSharedSound } from './shared-sound.ts';
import type { SoundStore } from './sound-store.ts';
import { soundCacheLimits, type UrlSounds } from './url-sounds.ts';

type Stored = { readonly sound: Sound; readonly version: string };

export type SoundLoaderDependencies = {
  readonly store: Pick<SoundStore, 'version' | 'read'>;
  readonly urls: Pick<UrlSounds, 'load'>;
  readonly logger: Logger;
};

export function createSoundLoader({ store, urls, logger }: SoundLoaderDependencies): SoundPort {
  // The cache has room for an hour and a half of audio. In practice, all calls on a node play the
  // same handful of sounds.
  const cache = new LRUCache<string, Stored>(soundCacheLimits);
  /** Reads in progress, by requested version. Calls that start at the same time share one read. */
  const reading = new Map<string, Promise<Stored | undefined>>();

  const read = async (accountId: string, name: string): Promise<Stored | undefined> => {
    const found = await store.read(accountId, name);
    if (found === undefined) return undefined;
    const sound = toSharedSound(`sound:${name}`, found);
    const stored = { version: found.version, sound };
    cache.set(cacheKey(accountId, name), stored);
    return stored;
  };

  const loadStored = async (accountId: string, name: string): Promise<SoundResult> => {
    const version = await store.version(accountId, name);
    const known = cache.get(cacheKey(accountId, name));
    if (version !== undefined && known?.version === version)
      return { ok: true, sound: known.sound };
    if (version === undefined) return { ok: false, reason: `There is no sound ${name}` };
    const pending = reading.get(version);
    const work = pending ?? read(accountId, name).finally(() => reading.delete(version));
    if (pending === undefined) reading.set(version, work);
    const stored = await work;
    return stored === undefined
      ? { ok: false, reason: `There is no sound ${name}` }
      : { ok: true, sound: stored.sound };
  };

  return {
    async loadSound(accountId, reference) {
      const place = soundPlaceOf(reference);
      if (place === undefined) return { ok: false, reason: 'Not a sound reference' };
      try {
        return place.kind === 'stored'
          ? await loadStored(accountId, place.name)
          : await urls.load(place.url);
      } catch (error) {
        logger.error({ err: error, accountId }, 'a sound could not be loaded');
        return { ok: false, reason: 'The sound could not be loaded' };
      }
    },
  };
}

function cacheKey(accountId: string, name: string): string {
  return `${accountId}/${name}`;
}
