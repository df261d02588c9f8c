// The common form of a speech-to-text protocol over one WebSocket: its first and last message, and
// the meaning of each received message. Pure.

import type { HeardWords } from '../../calls/capture/capture.ts';

/**
 * Providers recommend 20 to 250 ms of audio per message. Fewer messages are cheaper, but longer
 * messages arrive later.
 */
export const chunkMs = 100;

export type Said = {
  readonly transcript: string;
  /**
   * True for a final result, which is appended to the transcript. False for an interim result,
   * which the next result replaces.
   */
  readonly isFinal: boolean;
  /** How far the recogniser has listened, in ms from the first sample that it received. */
  readonly untilMs?: number;
  /**
   * When each word was said, in ms from the same sample. Undefined if the provider doesn't report
   * it.
   */
  readonly words?: readonly HeardWords[];
};

export type Message =
  | ({ readonly kind: 'said' } & Said)
  /** Part of the protocol, but we don't need it. */
  | { readonly kind: 'other' }
  /** The provider reports a failure. */
  | { readonly kind: 'error' }
  /** Not a message of this protocol. */
  | { readonly kind: 'rubbish' };

export type Protocol = {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The first message. Undefined if the protocol has none. */
  readonly opening?: string;
  /** The last message. */
  readonly closing: string;
  /**
   * Encodes a chunk of audio for the provider. Called once per chunk, in order. Default: 16-bit
   * little-endian.
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

/** Maximum number of words per result. For comparison, a minute of speech has about 200. */
const maxWords = 300;

/**
 * Reads words with times in seconds, which is what most providers send.
 * @returns undefined if there are no words, or if any of them isn't plausible
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
