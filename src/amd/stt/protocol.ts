// What a speech-to-text protocol over one WebSocket comes to: what is sent first and last, and what a message means. Pure.

import type { HeardWords } from '../../calls/capture/capture.ts';

/** Providers advise 20 to 250 ms a message of audio: fewer messages cost less, longer ones come later. */
export const chunkMs = 100;

export type Said = {
  readonly transcript: string;
  /** Adds to what was said; an interim result is replaced by the next one. */
  readonly isFinal: boolean;
  /** How far the recogniser has listened, from the first sample that it got. */
  readonly untilMs?: number;
  /** Where the provider says when each was said, from the first sample too. */
  readonly words?: readonly HeardWords[];
};

export type Message =
  | ({ readonly kind: 'said' } & Said)
  /** Part of the protocol, and nothing to us. */
  | { readonly kind: 'other' }
  /** The provider says that it failed. */
  | { readonly kind: 'error' }
  /** No message of this protocol. */
  | { readonly kind: 'rubbish' };

export type Protocol = {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The first message, where the protocol has one. */
  readonly opening?: string;
  /** The last one. */
  readonly closing: string;
  /** A chunk of audio as the provider wants it; without: 16-bit little-endian. Called once for each, in their order. */
  readonly encode?: (chunk: Int16Array) => Buffer;
  /** Never throws. */
  read(text: string): Message;
};

/** An object, or undefined for everything else. Shared by the protocols: both speak JSON objects. */
export function parseObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
    return value as Readonly<Record<string, unknown>>;
  } catch {
    return undefined;
  }
}

/** A length of time that can be believed, else undefined. */
export function milliseconds(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : undefined;
}

/** Of one result; a minute of speech has 200. */
const mostWords = 300;

/** Words with their times in seconds, as most providers have them. Undefined: there are none, or one that cannot be believed. */
export function timedWords(
  value: unknown,
  textNames: readonly string[],
): readonly HeardWords[] | undefined {
  if (!Array.isArray(value) || value.length === 0 || value.length > mostWords) return undefined;
  const words: HeardWords[] = [];
  for (const item of value as unknown[]) {
    if (typeof item !== 'object' || item === null) return undefined;
    const members = item as Readonly<Record<string, unknown>>;
    const text = textNames.map((name) => members[name]).find((one) => typeof one === 'string');
    const startS = milliseconds(members['start']);
    const endS = milliseconds(members['end']);
    if (typeof text !== 'string' || startS === undefined || endS === undefined) return undefined;
    words.push({ text, fromMs: Math.round(startS * 1_000), untilMs: Math.round(endS * 1_000) });
  }
  return words;
}
