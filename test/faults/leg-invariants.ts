// The invariants about the phones.

import type { FarCall } from '../support/far-end.ts';
import { type Aftermath, callIdOf, endsOf, type Fault } from './aftermath.ts';

/** How long a phone may stay up after the end of its call. */
const hangUpWithinMs = 10_000;
/**
 * How long a phone may stay up if the engine died between the INVITE and the ACK. The 200 of the
 * phone may come, and be retransmitted, for 32 s.
 */
const engineDiedWithinMs = 42_000;

export function nobodyLeftUp({
  farCalls,
  events,
  startedAt,
  engineDeaths,
  faults,
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
    const delays = faults
      .filter(({ from, to = Number.POSITIVE_INFINITY }) => from <= over && over <= to)
      .map(({ delaysHangUpMs = 0 }) => delaysHangUpMs);
    const withinMs = unansweredWhenItDied
      ? engineDiedWithinMs
      : hangUpWithinMs + Math.max(0, ...delays);
    // No phone can be hung up while there is no engine.
    const awayAtEnd = engineDeaths.filter(
      ({ at, backAt = at }) => at < over + withinMs && backAt > over,
    );
    const couldSince = Math.max(
      over,
      ...awayAtEnd.map(({ at, backAt = at }) => backAt),
      ...deathsOfHindered(faults, over),
    );
    const lateMs = (call.endedAt ?? Number.POSITIVE_INFINITY) - couldSince - withinMs;
    const at = `${((over - startedAt) / 1_000).toFixed(1)} s`;
    return lateMs > 0
      ? [
          `${callId}: its phone was up ${lateMs} ms too long after the end of the call at ${at} (${storyOf(call, over)})`,
        ]
      : [];
  });
}

/**
 * When nodes died that could not hang up at the end of the call, and could not yet when they died.
 * Other nodes hang up in their place, and can't know that they have to before the death.
 */
function deathsOfHindered(faults: readonly Fault[], over: number): readonly number[] {
  const hindered = faults.filter(
    ({ effect, from, to = Number.POSITIVE_INFINITY }) =>
      effect === 'hindered' && from <= over && over <= to,
  );
  return faults
    .filter(({ effect, node, from }) => {
      if (effect !== 'died' || from < over) return false;
      return hindered.some((one) => one.node === node && from <= (one.to ?? from));
    })
    .map(({ from }) => from);
}

/**
 * The gateway may send its BYE before it has read the phone's BYE. On a busy machine, the two can
 * cross within this time.
 */
const crossesWithinMs = 1_000;

/**
 * A phone whose call has ended gets no further BYE. There is one exception per fault after which a
 * process could not know of the hang-up, or could not store it for its successor: one more BYE,
 * which the phone answers with 481.
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
    const why = excuses.map(({ what }) => what).join(', ') || 'none';
    const when = `${late.map(inSeconds).join(', ')}, and was over at ${inSeconds(endedAt)}`;
    return [
      `${callIdOf(known, number)}: one of its phones was hung up at ${when} (faults: ${why})`,
    ];
  });
}

/** Describes the steps of the call, in milliseconds relative to its end. */
function storyOf(call: FarCall, over: number): string {
  const steps = { invitedAt: call.invitedAt, rangAt: call.rangAt, answeredAt: call.answeredAt };
  return Object.entries({ ...steps, acknowledgedAt: call.acknowledgedAt })
    .map(([step, at]) => `${step} ${at === undefined ? 'never' : at - over}`)
    .join(', ');
}
