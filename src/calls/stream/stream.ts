// The audio stream between a call and its bot, in the vocabulary of calls. `src/streams` implements
// the wire format.

/** When a stream begins. answered: at the 200 OK. person: when detection finds a person. */
export const streamConnects = ['answered', 'person'] as const;
export type StreamConnect = (typeof streamConnects)[number];

/** A stream as it is stored in a request. */
export type RequestedStream = {
  /** The URL without its query string, which may be secret. */
  readonly url: string;
  /** The query string, encrypted; base64. */
  readonly sealedQuery?: string;
  readonly connect: StreamConnect;
  readonly parameters: Readonly<Record<string, string>>;
};

/** One stream of a call. A call has one stream at a time. */
export type NumberedStream = RequestedStream & {
  /** 0 for the stream of the request; 1, 2, … for streams that commands begin. */
  readonly ordinal: number;
};

/** The settings that a stream is opened with. They contain secrets: never log or store them. */
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
  /** Audio of the far end that the bot did not accept in time. */
  readonly unheardMs: number;
  readonly ignoredMessages: number;
};

/**
 * Reports of a stream, in order: `opened` and `broken` alternate, then one of the last three
 * follows. If the stream never opened, that last report may be missing.
 */
export type StreamReport =
  /** The bot accepted the stream. `connection`: 1 for the first connection. */
  | { readonly kind: 'opened'; readonly connection: number; readonly openMs: number }
  /** A connection could not be made, or was lost. The media tries again. */
  | { readonly kind: 'broken'; readonly reason: string }
  /** The call ended, or the stream is no longer wanted. */
  | { readonly kind: 'stopped'; readonly reason: string; readonly counts?: StreamCounts }
  /** The bot closed the stream, and all of its audio was played. The call must end. */
  | { readonly kind: 'botLeft'; readonly counts: StreamCounts }
  /** No bot can be reached. The call must end if its request wanted the bot. */
  | { readonly kind: 'lost'; readonly reason: string };
