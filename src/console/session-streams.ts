// A stream of events ends with the session that opened it: after a sign-out, a rotation or a
// revocation, at whichever node that was done.

import type { EventSource, EventStreams } from '../http/event-stream.ts';
import type { SessionReader } from './sessions.ts';

/** Soon enough for a user who signed out elsewhere. Each look costs two small queries. */
const usuallyLookEveryMs = 2_000;

/** Streams that end with the session of their request. */
export function endingWithSession(
  streams: EventStreams,
  reader: Pick<SessionReader, 'find'>,
  lookEveryMs = usuallyLookEveryMs,
): EventStreams {
  return {
    ...streams,
    send: (request, reply, appId, source) => {
      const isSignedIn = async () => (await reader.find(request)) !== undefined;
      return streams.send(request, reply, appId, (how) =>
        whileSignedIn(isSignedIn, source, {
          ...how,
          lookEveryMs,
          // A reader that does not read would not see the end either.
          onEnded: () => {
            if (reply.raw.writableNeedDrain) how.onTooSlow();
          },
        }),
      );
    },
  };
}

type How = Parameters<EventSource>[0] & {
  readonly lookEveryMs: number;
  readonly onEnded: () => void;
};

async function* whileSignedIn(
  isSignedIn: () => Promise<boolean>,
  source: EventSource,
  { lookEveryMs, onEnded, ...how }: How,
): ReturnType<EventSource> {
  const ended = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  let isOver = false;
  const judge = (goesOn: boolean): void => {
    if (isOver) return;
    if (goesOn) lookLater();
    else {
      ended.abort();
      onEnded();
    }
  };
  const lookLater = (): void => {
    // A database that is away signs no user out: without it there are no events either.
    timer = setTimeout(() => {
      isSignedIn().then(judge, () => judge(true));
    }, lookEveryMs);
  };
  lookLater();
  try {
    yield* source({ ...how, signal: AbortSignal.any([how.signal, ended.signal]) });
  } finally {
    isOver = true;
    clearTimeout(timer);
  }
}
