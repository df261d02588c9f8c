// Ends an event stream when the session that opened it has ended, i.e. after a sign-out, a rotation
// or a revocation on any node.

import type { EventSource, EventStreams } from '../http/event-stream.ts';
import type { SessionReader } from './sessions.ts';

/**
 * This is frequent enough to end streams soon after a sign-out on another node. Each check costs
 * two small queries.
 */
const defaultCheckEveryMs = 2_000;

/** Wraps event streams so that each stream ends when its request's session ends. */
export function endingWithSession(
  streams: EventStreams,
  reader: Pick<SessionReader, 'find'>,
  checkEveryMs = defaultCheckEveryMs,
): EventStreams {
  return {
    ...streams,
    send: (request, reply, appId, source) => {
      const isSignedIn = async () => (await reader.find(request)) !== undefined;
      return streams.send(request, reply, appId, (options) =>
        whileSignedIn(isSignedIn, source, {
          ...options,
          checkEveryMs,
          // A client that isn't reading wouldn't notice the end of the stream, so cut its
          // connection.
          onEnded: () => {
            if (reply.raw.writableNeedDrain) options.onTooSlow();
          },
        }),
      );
    },
  };
}

type CheckedOptions = Parameters<EventSource>[0] & {
  readonly checkEveryMs: number;
  readonly onEnded: () => void;
};

async function* whileSignedIn(
  isSignedIn: () => Promise<boolean>,
  source: EventSource,
  { checkEveryMs, onEnded, ...options }: CheckedOptions,
): ReturnType<EventSource> {
  const ended = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  let hasFinished = false;
  const handleCheck = (isStillSignedIn: boolean): void => {
    if (hasFinished) return;
    if (isStillSignedIn) checkLater();
    else {
      ended.abort();
      onEnded();
    }
  };
  const checkLater = (): void => {
    // We don't sign users out just because the database is unreachable. During that time, there
    // aren't any events to leak anyway.
    timer = setTimeout(() => {
      isSignedIn().then(handleCheck, () => handleCheck(true));
    }, checkEveryMs);
  };
  checkLater();
  try {
    yield* source({ ...options, signal: AbortSignal.any([options.signal, ended.signal]) });
  } finally {
    hasFinished = true;
    clearTimeout(timer);
  }
}
