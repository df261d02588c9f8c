// Ends an event stream with the session that opened it: after a sign-out, a rotation or a
// revocation at any node.

import type { EventSource, EventStreams } from '../http/event-stream.ts';
import type { SessionReader } from './sessions.ts';

/** Short enough for a user who signed out elsewhere. Each check costs two small queries. */
const defaultCheckEveryMs = 2_000;

/** Wraps event streams so that each ends with the session of its request. */
export function endingWithSession(
  streams: EventStreams,
  reader: Pick<SessionReader, 'find'>,
  checkEveryMs = defaultCheckEveryMs,
): EventStreams {
  return {
    ...streams,
    send: (request, reply, appId, source) => {
      const isSignedIn = async () => (await reader.find(request)) !== undefined;
      return streams.send(request, reply, appId, (how) =>
        whileSignedIn(isSignedIn, source, {
          ...how,
          checkEveryMs,
          // A client that does not read would not notice the end, so its connection is cut.
          onEnded: () => {
            if (reply.raw.writableNeedDrain) how.onTooSlow();
          },
        }),
      );
    },
  };
}

type How = Parameters<EventSource>[0] & {
  readonly checkEveryMs: number;
  readonly onEnded: () => void;
};

async function* whileSignedIn(
  isSignedIn: () => Promise<boolean>,
  source: EventSource,
  { checkEveryMs, onEnded, ...how }: How,
): ReturnType<EventSource> {
  const ended = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  let isOver = false;
  const handleCheck = (isStillSignedIn: boolean): void => {
    if (isOver) return;
    if (isStillSignedIn) checkLater();
    else {
      ended.abort();
      onEnded();
    }
  };
  const checkLater = (): void => {
    // An unreachable database does not sign users out. Without it there are no events either.
    timer = setTimeout(() => {
      isSignedIn().then(handleCheck, () => handleCheck(true));
    }, checkEveryMs);
  };
  checkLater();
  try {
    yield* source({ ...how, signal: AbortSignal.any([how.signal, ended.signal]) });
  } finally {
    isOver = true;
    clearTimeout(timer);
  }
}
