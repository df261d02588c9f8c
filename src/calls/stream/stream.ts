// A call's audio stream to its bot, in the call's words. The wire format is in src/streams.

/** answered: at the 200 OK. person: when detection says that a person is there. */
export const streamConnects = ['answered', 'person'] as const;
export type StreamConnect = (typeof streamConnects)[number];

/** As it stands in a stored request. */
export type RequestedStream = {
  /** Without its query string, which may be a secret. */
  readonly url: string;
  /** The query string, encrypted; base64. */
  readonly sealedQuery?: string;
  readonly connect: StreamConnect;
  readonly parameters: Readonly<Record<string, string>>;
};

/** One of a call's, which come one after the other. */
export type NumberedStream = RequestedStream & {
  /** 0: of the request; 1, 2, … by command. */
  readonly ordinal: number;
};

/** What a stream is opened with. Holds secrets: never logged, never stored. */
export type StreamSettings = Pick<NumberedStream, 'ordinal'> & {
  /** To the letter as it was configured: it is signed. */
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
  /** Of the far end, which the bot did not take. */
  readonly unheardMs: number;
  readonly ignoredMessages: number;
};

/** What becomes of a stream, in order: `opened` and `broken` in turn, then one of the last three or, before it opened, nothing. */
export type StreamReport =
  /** The bot took the stream; 1 for the first connection. */
  | { readonly kind: 'opened'; readonly connection: number; readonly openMs: number }
  /** A connection was not made, or was lost; another is tried. */
  | { readonly kind: 'broken'; readonly reason: string }
  /** The call ended first, or the stream is not wanted any more. */
  | { readonly kind: 'stopped'; readonly reason: string; readonly counts?: StreamCounts }
  /** The bot closed it and all that it had said was played: the call is to end. */
  | { readonly kind: 'botLeft'; readonly counts: StreamCounts }
  /** There is no bot to be reached: the call is to end, if its request wanted one. */
  | { readonly kind: 'lost'; readonly reason: string };
