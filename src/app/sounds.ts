// The sounds that calls play: where they are kept, and what converts them.

import type { SoundPort } from '../calls/ports.ts';
import { createConverter } from '../sounds/converter.ts';
import { createSoundLoader } from '../sounds/sound-loader.ts';
import { createSoundStore } from '../sounds/sound-store.ts';
import { createSoundLibrary, type SoundLibrary } from '../sounds/sounds.ts';
import type { Environment } from './environment.ts';
import type { Storage } from './storage.ts';

export type Sounds = { readonly library: SoundLibrary; readonly port: SoundPort };

export function openSounds(
  { clock, logger, closers }: Environment,
  { database }: Pick<Storage, 'database'>,
): Sounds {
  const store = createSoundStore({ database, clock });
  const converter = createConverter();
  closers.add('sound conversion', () => converter.close());
  return {
    library: createSoundLibrary(store, converter),
    port: createSoundLoader({ store, logger }),
  };
}
