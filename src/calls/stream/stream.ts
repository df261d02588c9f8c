// The audio stream between a call and its bot, in the vocabulary of calls. See `src/streams` for
// the wire format.

/** When a stream starts. answered: at the 200 OK. person: when detection finds a person. */
export const streamConnects = ['answered', 'person'] as const;
export type StreamConnect = (typeof streamConnects)[number];

/** A stream as stored in a request. */
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
  /** 0 for the request's own stream; 1, 2, … for streams that commands start. */
  readonly ordinal: number;
};

/** The settings for opening a stream. They contain secrets, so never log or store them. */
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
  /** Amount of audio from the far end that the bot didn't accept in time. */
  readonly unheardMs: number;
  readonly ignoredMessages: number;
};

/**
 * A stream's reports, in order: `opened` and `broken` alternate, followed by one of the last three.
 * If the stream never opened, that last report may be missing.
 */
export type StreamReport =
  /** The bot accepted the stream. `connection`: 1 for the first connection. */
  | { readonly kind: 'opened'; readonly connection: number; readonly openMs: number }
  /** A connection couldn't be made, or was lost. The media worker will try again. */
  | { readonly kind: 'broken'; readonly reason: string }
  /** The call ended, or it no longer wants the stream. */
  | { readonly kind: 'stopped'; readonly reason: string; readonly counts?: StreamCounts }
  /** The bot closed the stream, and all of its audio has been played. The call must end. */
  | { readonly kind: 'botLeft'; readonly counts: StreamCounts }
  /** No bot can be reached. The call must end if the bot was the request's own. */
  | { readonly kind: 'lost'; readonly reason: string };
