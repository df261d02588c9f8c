// Opens the sounds that calls can play: the store, the converter and the URL fetcher.

import { soundPlaceOf } from '../calls/playback/sound-reference.ts';
import type { SoundPort } from '../calls/ports.ts';
import { createAddressGuard } from '../lib/address-guard.ts';
import { createHostResolver } from '../lib/host-resolver.ts';
import { createConverter } from '../sounds/converter.ts';
import { createSoundFetcher } from '../sounds/sound-fetch.ts';
import { createSoundLoader } from '../sounds/sound-loader.ts';
import { createSoundLibrary, createSoundStore, type SoundLibrary } from '../sounds/sound-store.ts';
import { UrlSounds } from '../sounds/url-sounds.ts';
import type { Environment } from './environment.ts';
import { networksOpenTo } from './networks.ts';
import type { Storage } from './storage.ts';

export type Sounds = {
  readonly library: SoundLibrary;
  readonly port: SoundPort;
  /**
   * Returns true if we may fetch the sound from its URL. We can't check a host name until it has
   * been resolved.
   */
  isReachable(reference: string): boolean;
};

export function openSounds(
  { config, clock, logger, closers }: Environment,
  { database }: Pick<Storage, 'database'>,
  beyondLaptop: readonly string[],
): Sounds {
  const store = createSoundStore({ database, clock });
  const converter = createConverter();
  closers.add('sound conversion', () => converter.close());
  const networks = networksOpenTo(config.notifier.allowedNetworks, beyondLaptop);
  const fetcher = createSoundFetcher({
    guard: createAddressGuard(networks),
    privateGuard: createAddressGuard(networks, createHostResolver(), false),
  });
  closers.add('sound fetching', () => fetcher.close());
  const urls = new UrlSounds({ fetcher, converter, nowMs: () => performance.now() });
  return {
    library: createSoundLibrary(store, converter),
    port: createSoundLoader({ store, urls, logger }),
    isReachable: (reference) => {
      const place = soundPlaceOf(reference);
      return place?.kind !== 'url' || fetcher.mayFetch(place.url);
    },
  };
}
