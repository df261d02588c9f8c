// Sounds in memory, as much as there is room for: those that were used least lately make room.

import type { Sound } from '../calls/playback.ts';

export class SoundCache<Entry extends { readonly sound: Sound }> {
  readonly #entries = new Map<string, Entry>();
  readonly #maxBytes: number;
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get(key: string): Entry | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry;
  }

  set(key: string, entry: Entry): void {
    this.delete(key);
    this.#entries.set(key, entry);
    this.#bytes += costOf(entry);
    for (const oldest of this.#entries.keys()) {
      if (this.#bytes <= this.#maxBytes) return;
      this.delete(oldest);
    }
  }

  delete(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    this.#bytes -= costOf(entry);
  }
}

/** What an entry costs beside its audio: without it, tiny sounds would be without number. */
const entryBytes = 4_096;

function costOf({ sound }: { readonly sound: Sound }): number {
  return sound.mulaw.length + entryBytes;
}
