// What a speech-to-text protocol over one WebSocket comes to: what is sent first and last, and what a message means. Pure.

/** Providers advise 20 to 250 ms a message of audio: fewer messages cost less, longer ones come later. */
export const chunkMs = 100;

export type Said = {
  readonly transcript: string;
  /** Adds to what was said; an interim result is replaced by the next one. */
  readonly isFinal: boolean;
  /** How far the recogniser has listened, from the first sample that it got. */
  readonly untilMs?: number;
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
