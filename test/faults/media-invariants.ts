// The invariants about the media of the calls: bots, sounds and voicemail messages.

import { type Aftermath, endsOf, isTerminal, type StreamEvent, storiesOf } from './aftermath.ts';

/**
 * How long a bot may stay connected after the end of its call. A bot that was stopped for 9 s, or
 * whose node was stopped, sees the end up to 9 s later.
 */
const botLeavesWithinMs = 25_000;

/**
 * No bot stays connected to a call that has ended. A bot that does not read its socket sees the end
 * only after the storm, but then its connection must be closed too.
 */
export function noBotLeft({ accepted, events, botConnections, startedAt }: Aftermath): string[] {
  const endedAt = endsOf({ events });
  return botConnections.flatMap(({ bot, number, openedAt, closedAt }) => {
    const callId = accepted.get(number) ?? 'no call';
    const over = endedAt.get(callId);
    if (over === undefined) return [];
    const subject = `${callId}: its bot (${bot}, connected at ${openedAt - startedAt} ms)`;
    if (closedAt === undefined) return [`${subject} is still connected`];
    const lateMs = closedAt - Math.max(over, openedAt) - botLeavesWithinMs;
    const isBlind = bot === 'deaf' || bot === 'mute' || bot === 'flood';
    return lateMs > 0 && !isBlind ? [`${subject} was connected ${lateMs} ms too long`] : [];
  });
}

/**
 * Each stream of a call ends once, and no event about it follows. The command that began a stream
 * identifies it.
 */
export function streamsOverOnce(aftermath: Aftermath): string[] {
  return storiesOf(aftermath).flatMap((story) => {
    const over = new Set<string>();
    return story
      .filter(({ type }) => type.startsWith('stream-'))
      .flatMap((event) => streamProblem(over, event) ?? []);
  });
}

/**
 * Returns the problem of this event, if any. Adds to `over`, the set of streams that have ended.
 */
function streamProblem(
  over: Set<string>,
  { type, callId, data: { commandId, willRetry } }: StreamEvent,
): string | undefined {
  const stream = typeof commandId === 'string' ? commandId : 'of the request';
  if (over.has(stream)) return `${callId}: the stream ${stream} had ended before ${type}`;
  const goesOn = type === 'stream-started' || willRetry === true;
  if (!goesOn) over.add(stream);
  return undefined;
}

/**
 * Each start of a sound has one outcome, before its next start and before the end of the call. If
 * the process died, the sound has no outcome, and only `completed` reports the end.
 */
export function playbacksOverOnce(aftermath: Aftermath): string[] {
  return storiesOf(aftermath).flatMap((story) => {
    const playing = new Set<unknown>();
    const problems = story.flatMap((event) => playbackProblem(playing, event) ?? []);
    if (playing.size === 0 || wasLost(story.at(-1))) return problems;
    return [...problems, `${story[0]?.callId}: a sound that it played has no outcome`];
  });
}

/** Returns the problem of this event, if any. Updates `playing`, the sounds that are playing. */
function playbackProblem(
  playing: Set<unknown>,
  { type, callId, data: { playbackId, reason } }: StreamEvent,
): string | undefined {
  if (type === 'playback-started') {
    if (playing.has(playbackId))
      return `${callId}: ${String(playbackId)} started twice without an outcome`;
    playing.add(playbackId);
  }
  if (type !== 'playback-finished') return undefined;
  const isKnown = playing.delete(playbackId);
  // A sound that could not start has an outcome too.
  return isKnown || reason !== 'done'
    ? undefined
    : `${callId}: ${String(playbackId)} has two outcomes`;
}

/** `completed` reports a voicemail message exactly if one was played. */
export function messagesAreReported(aftermath: Aftermath): string[] {
  return storiesOf(aftermath).flatMap((story) => {
    const end = story.at(-1);
    if (end?.type !== 'completed') return [];
    const { outcome, voicemail } = end.data;
    const isReported = voicemail !== undefined;
    const wasPlayed = story.some(isMessage);
    if (wasPlayed === isReported && (wasPlayed || outcome !== 'voicemail-left')) return [];
    const [what, reports] = [wasPlayed ? 'a' : 'no', isReported ? 'reports' : 'does not report'];
    return [
      `${end.callId}: ${what} message was played, but its end (${String(outcome)}) ${reports} one`,
    ];
  });
}

const isMessage = ({ type, data }: StreamEvent): boolean =>
  type === 'playback-started' && data['source'] === 'voicemail';

/** Returns true if another process published the end. That process knows only what was stored. */
function wasLost(end: StreamEvent | undefined): boolean {
  const isEnd = end !== undefined && isTerminal(end.type);
  return isEnd && /^Gateway (restarted|lost|failed)/.test(String(end.data['reason']));
}
