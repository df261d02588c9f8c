// What all speech-to-text protocols over a WebSocket have in common. Each protocol defines the
// first and last message, and interprets each message that we receive. Implementations are pure.

import type { HeardWords } from '../../calls/capture/capture.ts';

/**
 * Providers recommend 20 to 250 ms of audio per message. Longer messages mean fewer of them, which
 * is cheaper, but the audio arrives later.
 */
export const chunkMs = 100;

export type Said = {
  readonly transcript: string;
  /**
   * True for a final result, which is appended to the transcript. False for an interim result,
   * which will be replaced by the next result.
   */
  readonly isFinal: boolean;
  /**
   * The point up to which the recogniser has listened, in ms from the first sample that it
   * received.
   */
  readonly untilMs?: number;
  /**
   * When each word was spoken, in ms from the same sample. Undefined if the provider doesn't send
   * word times.
   */
  readonly words?: readonly HeardWords[];
};

export type Message =
  | ({ readonly kind: 'said' } & Said)
  /** A message that belongs to the protocol but that we don't need. */
  | { readonly kind: 'other' }
  /** The provider has reported a failure. */
  | { readonly kind: 'error' }
  /** Doesn't belong to this protocol. */
  | { readonly kind: 'rubbish' };

export type Protocol = {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The first message. Undefined if the protocol doesn't have one. */
  readonly opening?: string;
  /** The last message. */
  readonly closing: string;
  /**
   * Encodes a chunk of audio for the provider. Called once for each chunk, in order. By default,
   * audio is sent as 16-bit little-endian samples.
   */
  readonly encode?: (chunk: Int16Array) => Buffer;
  /** Never throws. */
  read(text: string): Message;
};

/** Returns the JSON object in `text`, or undefined if `text` is anything else. */
export function parseObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
    return value as Readonly<Record<string, unknown>>;
  } catch {
    return undefined;
  }
}

/** Returns `value` if it's a plausible duration, otherwise undefined. */
export function milliseconds(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : undefined;
}

/** Maximum number of words per result. For comparison, people say about 200 words in a minute. */
const maxWords = 300;

/**
 * Reads words whose times are in seconds, which is what most providers send.
 * @returns undefined if there are no words, or if any of them is implausible
 */
export function timedWords(
  value: unknown,
  textNames: readonly string[],
): readonly HeardWords[] | undefined {
  if (!Array.isArray(value) || value.length === 0 || value.length > maxWords) return undefined;
  const words: HeardWords[] = [];
  for (const item of value as unknown[]) {
    if (typeof item !== 'object' || item === null) return undefined;
    const members = item as Readonly<Record<string, unknown>>;
    const text = textNames
      .map((name) => members[name])
      .find((member) => typeof member === 'string');
    const startS = milliseconds(members['start']);
    const endS = milliseconds(members['end']);
    if (typeof text !== 'string' || startS === undefined || endS === undefined) return undefined;
    words.push({ text, fromMs: Math.round(startS * 1_000), untilMs: Math.round(endS * 1_000) });
  }
  return words;
}
