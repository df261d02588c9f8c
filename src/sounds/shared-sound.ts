// Puts a sound's audio where the media workers can read it.

import type { Sound } from '../calls/playback/playback.ts';

/** Copies a sound into shared memory, so media workers needn't copy it again. */
export function toSharedSound(
  name: string,
  audio: { readonly mulaw: Uint8Array; readonly sha256: string },
): Sound {
  const { mulaw, sha256 } = audio;
  const shared = new Uint8Array(new SharedArrayBuffer(mulaw.length));
  shared.set(mulaw);
  return { name, mulaw: shared, sha256, durationMs: mulaw.length / 8 };
}
