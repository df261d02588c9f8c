// What the phones saw.

import type { FarCall } from '../support/far-end.ts';
import { type Aftermath, callIdOf, endsOf } from './aftermath.ts';

/** After the end of its call a phone may be up for so long. */
const hangUpWithinMs = 10_000;
/** The engine died with the INVITE unanswered: the phone's 200 may come, and be sent again, for 32 s. */
const engineDiedWithinMs = 42_000;

export function nobodyLeftUp({
  farCalls,
  events,
  startedAt,
  engineDeaths,
  ...known
}: Aftermath): string[] {
  const endedAt = endsOf({ events });
  return farCalls.flatMap((call) => {
    const callId = callIdOf(known, call.number) ?? 'no call';
    const over = endedAt.get(callId);
    if (over === undefined) return [];
    const unansweredWhenItDied = engineDeaths.some(
      ({ at }) => call.invitedAt <= at && (call.acknowledgedAt ?? Number.POSITIVE_INFINITY) >= at,
    );
    const withinMs = unansweredWhenItDied ? engineDiedWithinMs : hangUpWithinMs;
    // Without an engine no phone can be hung up.
    const awayAtEnd = engineDeaths.filter(
      ({ at, backAt = at }) => at < over + withinMs && backAt > over,
    );
    const couldSince = Math.max(over, ...awayAtEnd.map(({ at, backAt = at }) => backAt));
    const lateMs = (call.endedAt ?? Number.POSITIVE_INFINITY) - couldSince - withinMs;
    const at = `${((over - startedAt) / 1_000).toFixed(1)} s`;
    return lateMs > 0
      ? [
          `${callId}: its phone was up ${lateMs} ms too long after its end at ${at} (${storyOf(call, over)})`,
        ]
      : [];
  });
}

/** Ours had left before theirs was read, on a machine that has much else to do. */
const crossesWithinMs = 1_000;

/**
 * A phone that is out of its call, since it was hung up or has hung up, gets no further BYE: but for one, which it answers with 481, for
 * each fault after which a process could not know of that, or could not store it for its successor.
 */
export function hungUpOnce({ farCalls, faults, startedAt, ...known }: Aftermath): string[] {
  const inSeconds = (at: number): string => `${((at - startedAt) / 1_000).toFixed(1)} s`;
  return farCalls.flatMap(({ number, byes, endedAt = Number.POSITIVE_INFINITY }) => {
    const hasHungUp = byes[0]?.status === 481;
    const late = byes.flatMap(({ at, status }) => {
      const isCrossing = hasHungUp && at - endedAt < crossesWithinMs;
      return status === 200 || isCrossing ? [] : [at];
    });
    const last = late.at(-1);
    if (last === undefined) return [];
    const excuses = faults.filter(
      ({ from, to = Number.POSITIVE_INFINITY }) => from <= last && endedAt <= to,
    );
    if (late.length <= excuses.length) return [];
    const why = excuses.map(({ what }) => what).join(', ') || 'nothing';
    const when = `${late.map(inSeconds).join(', ')}, and was over at ${inSeconds(endedAt)}`;
    return [
      `${callIdOf(known, number)}: one of its phones was hung up at ${when} (${why} went on)`,
    ];
  });
}

/** Milliseconds before and after the end of the call. */
function storyOf(call: FarCall, over: number): string {
  const steps = { invitedAt: call.invitedAt, rangAt: call.rangAt, answeredAt: call.answeredAt };
  return Object.entries({ ...steps, acknowledgedAt: call.acknowledgedAt })
    .map(([step, at]) => `${step} ${at === undefined ? 'never' : at - over}`)
    .join(', ');
}
