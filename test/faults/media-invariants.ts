// What was heard and said in the calls: bots, sounds, messages.

import { type Aftermath, endsOf, isTerminal, type StreamEvent, storiesOf } from './aftermath.ts';

/** A bot that was stopped for 9 s, or whose node was, sees the end of its call that much later. */
const botLeavesWithinMs = 25_000;

/** What does not read sees nothing until the calm: then its connection must be over, too. */
export function noBotLeft({ accepted, events, botConnections, startedAt }: Aftermath): string[] {
  const endedAt = endsOf({ events });
  return botConnections.flatMap(({ bot, number, openedAt, closedAt }) => {
    const callId = accepted.get(number) ?? 'no call';
    const over = endedAt.get(callId);
    if (over === undefined) return [];
    const where = `${callId}: its bot (${bot}, connected at ${openedAt - startedAt} ms)`;
    if (closedAt === undefined) return [`${where} is still connected`];
    const lateMs = closedAt - Math.max(over, openedAt) - botLeavesWithinMs;
    const isBlind = bot === 'deaf' || bot === 'mute' || bot === 'flood';
    return lateMs > 0 && !isBlind ? [`${where} was connected ${lateMs} ms too long`] : [];
  });
}

/** Each of a call's, told apart by the command that began it: it is over once, and nothing is told of it after that. */
export function streamsOverOnce(aftermath: Aftermath): string[] {
  return storiesOf(aftermath).flatMap((story) => {
    const over = new Set<string>();
    return story
      .filter(({ type }) => type.startsWith('stream-'))
      .flatMap((event) => streamProblem(over, event) ?? []);
  });
}

/** `over`: before and after this event. */
function streamProblem(
  over: Set<string>,
  { type, callId, data: { commandId, willRetry } }: StreamEvent,
): string | undefined {
  const stream = typeof commandId === 'string' ? commandId : 'of its request';
  if (over.has(stream)) return `${callId}: the stream ${stream} was over before ${type}`;
  const goesOn = type === 'stream-started' || willRetry === true;
  if (!goesOn) over.add(stream);
  return undefined;
}

/** Each start has one outcome, before the next start and before the call's end; where the process was lost, `completed` alone tells it. */
export function playbacksOverOnce(aftermath: Aftermath): string[] {
  return storiesOf(aftermath).flatMap((story) => {
    const playing = new Set<unknown>();
    const problems = story.flatMap((event) => playbackProblem(playing, event) ?? []);
    if (playing.size === 0 || wasLost(story.at(-1))) return problems;
    return [...problems, `${story[0]?.callId}: what it played has no outcome`];
  });
}

/** `playing`: before and after this event. */
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
  // What could not even start has an outcome, too.
  return isKnown || reason !== 'done'
    ? undefined
    : `${callId}: ${String(playbackId)} has two outcomes`;
}

/** What `completed` says of a message is what was played: none is claimed that was not, and none is left out. */
export function messagesAreTold(aftermath: Aftermath): string[] {
  return storiesOf(aftermath).flatMap((story) => {
    const end = story.at(-1);
    if (end?.type !== 'completed') return [];
    const { outcome, voicemail } = end.data;
    const isTold = voicemail !== undefined;
    const isPlayed = story.some(isMessage);
    if (isPlayed === isTold && (isPlayed || outcome !== 'voicemail-left')) return [];
    const [what, told] = [isPlayed ? 'a' : 'no', isTold ? 'tells' : 'does not tell'];
    return [
      `${end.callId}: ${what} message was played, and its end (${String(outcome)}) ${told} of one`,
    ];
  });
}

const isMessage = ({ type, data }: StreamEvent): boolean =>
  type === 'playback-started' && data['source'] === 'voicemail';

/** Stated by another process, which knows no more than what was stored. */
function wasLost(end: StreamEvent | undefined): boolean {
  const isEnd = end !== undefined && isTerminal(end.type);
  return isEnd && /^Gateway (restarted|lost|failed)/.test(String(end.data['reason']));
}
