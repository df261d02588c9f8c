// The audio stream of a call to its bot, in the terms of the call. The wire format is in
// src/streams.

/** When the stream begins. answered: at the 200 OK. person: when detection finds a person. */
export const streamConnects = ['answered', 'person'] as const;
export type StreamConnect = (typeof streamConnects)[number];

/** A stream as it is stored in a request. */
export type RequestedStream = {
  /** The URL without its query string, which may be a secret. */
  readonly url: string;
  /** The query string, encrypted; base64. */
  readonly sealedQuery?: string;
  readonly connect: StreamConnect;
  readonly parameters: Readonly<Record<string, string>>;
};

/** One of the streams of a call, which follow one another. */
export type NumberedStream = RequestedStream & {
  /** 0 for the stream of the request; 1, 2, … for those by command. */
  readonly ordinal: number;
};

/** What a stream is opened with. It holds secrets: never logged, never stored. */
export type StreamSettings = Pick<NumberedStream, 'ordinal'> & {
  /** The URL exactly as it was configured, because it is signed. */
  readonly url: string;
  readonly secret: string;
  readonly connect: StreamConnect;
  readonly accountSid: string;
  readonly callSid: string;
  readonly streamSid: string;
  readonly customParameters: Readonly<Record<string, string>>;
};

export type StreamCounts = {
  readonly connections: number;
  readonly playedMs: number;
  readonly droppedMs: number;
  readonly underruns: number;
  /** Audio of the far end that the bot did not take. */
  readonly unheardMs: number;
  readonly ignoredMessages: number;
};

/**
 * Reports of a stream, in order: `opened` and `broken` alternate, then one of the last three
 * follows. Before the stream has opened, the end may be missing.
 */
export type StreamReport =
  /** The bot took the stream. `connection`: 1 for the first connection. */
  | { readonly kind: 'opened'; readonly connection: number; readonly openMs: number }
  /** A connection was not made, or was lost. Another one is tried. */
  | { readonly kind: 'broken'; readonly reason: string }
  /** The call ended, or the stream is not wanted any more. */
  | { readonly kind: 'stopped'; readonly reason: string; readonly counts?: StreamCounts }
  /** The bot closed the stream, and all of its audio was played. The call must end. */
  | { readonly kind: 'botLeft'; readonly counts: StreamCounts }
  /** No bot can be reached. The call must end if its request wanted the bot. */
  | { readonly kind: 'lost'; readonly reason: string };
