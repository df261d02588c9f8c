// Loads sounds by URL and caches them in memory. We revalidate each sound at most once a minute. If
// its server fails, we can keep using the cached copy for a day.

import { subtle } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Sound } from '../calls/playback/playback.ts';
import { publicNameOf } from '../calls/playback/sound-reference.ts';
import type { SoundResult } from '../calls/ports.ts';
import { takeTurns } from '../lib/turns.ts';
import type { Converter } from './converter.ts';
import { toSharedSound } from './shared-sound.ts';
import type { Fetched, SoundFetcher, Validators } from './sound-fetch.ts';

export type UrlSoundsDependencies = {
  readonly fetcher: Pick<SoundFetcher, 'fetch'>;
  readonly converter: Pick<Converter, 'convert'>;
  readonly nowMs: () => number;
};

/**
 * Limits the cache by bytes of audio. On top of its audio, each sound counts with a fixed overhead,
 * which also limits the number of tiny sounds.
 */
export const soundCacheLimits = {
  maxSize: 48_000_000,
  sizeCalculation: ({ sound }: { readonly sound: Sound }) => sound.mulaw.length + 4_096,
};
const revalidateAfterMs = 60_000;
const staleForMs = 24 * 3_600_000;
/**
 * Limits the fetches that are running or waiting. Each running fetch keeps a file of up to 10 MB in
 * memory.
 */
const turnLimits = { running: 4, waiting: 100 };

type Copy = {
  readonly sound: Sound;
  readonly validators: Validators;
  /** The time of our last request to the server, regardless of its response. */
  readonly askedAtMs: number;
  /** The last time at which we knew that this copy was current. */
  readonly validAtMs: number;
};

export class UrlSounds {
  readonly #dependencies: UrlSoundsDependencies;
  readonly #copies = new LRUCache<string, Copy>(soundCacheLimits);
  /** Loads in progress, by URL. Calls that start at the same time share one load. */
  readonly #loading = new Map<string, Promise<SoundResult>>();
  readonly #turns = takeTurns(turnLimits, () => new Error('too many sounds are being fetched'));

  constructor(dependencies: UrlSoundsDependencies) {
    this.#dependencies = dependencies;
  }

  /**
   * Loads a sound.
   * @throws Error if too many sounds are being fetched or converted
   */
  async load(url: URL): Promise<SoundResult> {
    const key = cacheKey(url);
    const copy = this.#copies.get(key);
    const now = this.#dependencies.nowMs();
    if (copy !== undefined && now - copy.askedAtMs < revalidateAfterMs) {
      return { ok: true, sound: copy.sound };
    }
    const known = this.#loading.get(key);
    if (known !== undefined) return await known;
    const loading = this.#turns(() => this.#refresh(key, url, copy));
    this.#loading.set(key, loading);
    try {
      return await loading;
    } finally {
      this.#loading.delete(key);
    }
  }

  async #refresh(key: string, url: URL, copy: Copy | undefined): Promise<SoundResult> {
    const fetched = await this.#dependencies.fetcher.fetch(url, copy?.validators ?? {});
    const now = this.#dependencies.nowMs();
    switch (fetched.kind) {
      case 'unchanged':
        if (copy === undefined) return failed(url, 'the server responded with 304');
        return this.#keep(key, { ...copy, askedAtMs: now, validAtMs: now });
      case 'file':
        return await this.#convert(key, url, fetched, copy);
      case 'gone':
        this.#copies.delete(key);
        return failed(url, fetched.reason);
      case 'failed':
        return this.#fallBack(key, url, copy, fetched.reason);
    }
  }

  async #convert(
    key: string,
    url: URL,
    { file, validators }: Extract<Fetched, { kind: 'file' }>,
    copy: Copy | undefined,
  ): Promise<SoundResult> {
    const converted = await this.#dependencies.converter.convert(file);
    if (!converted.ok)
      return this.#fallBack(key, url, copy, `it is not a sound: ${converted.problem}`);
    const { mulaw } = converted;
    const sound = toSharedSound(publicNameOf(url.href), { mulaw, sha256: await sha256Of(mulaw) });
    const now = this.#dependencies.nowMs();
    return this.#keep(key, { sound, validators, askedAtMs: now, validAtMs: now });
  }

  #keep(key: string, copy: Copy): SoundResult {
    this.#copies.set(key, copy);
    return { ok: true, sound: copy.sound };
  }

  /**
   * Falls back on the cached copy for up to a day if the server fails, or sends something that
   * isn't a sound.
   */
  #fallBack(key: string, url: URL, copy: Copy | undefined, reason: string): SoundResult {
    const now = this.#dependencies.nowMs();
    if (copy !== undefined && now - copy.validAtMs < staleForMs) {
      return this.#keep(key, { ...copy, askedAtMs: now });
    }
    this.#copies.delete(key);
    return failed(url, reason);
  }
}

/** Hashes outside the event loop, because ten minutes of audio would block it for 20 ms. */
async function sha256Of(audio: Uint8Array<ArrayBuffer>): Promise<string> {
  return Buffer.from(await subtle.digest('SHA-256', audio)).toString('hex');
}

function cacheKey(url: URL): string {
  const key = new URL(url);
  key.hash = '';
  return key.href;
}

function failed(url: URL, reason: string): SoundResult {
  return {
    ok: false,
    reason: `The sound at ${publicNameOf(url.href)} is not available: ${reason}`,
  };
}
