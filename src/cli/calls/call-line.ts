// A call in one line: when, which, whom, and what became of it.

import type { CallSummary } from '../../interactions/call-queries.ts';
import { talkTime, whoPickedUp } from '../picked-up.ts';

/** `now`: for a call that is up. */
export function callLine(call: CallSummary, now: Date): string {
  const { acceptedAt, callId, botId, target, status, outcome, reason } = call;
  const { verdict, verdictReason, beep } = call;
  const who = whoPickedUp({ verdict, reason: verdictReason, beep });
  const answered = [who, talkTimeOf(call, now)].filter((part) => part !== undefined).join(', ');
  // `completed  completed` would say it twice.
  const finer = outcome === undefined || outcome === status ? '' : `${outcome} `;
  return [
    ...[acceptedAt, callId, botId, target, status],
    ...(answered === '' ? [] : [answered]),
    ...(outcome === undefined ? [] : [`${finer}(${reason ?? ''})`]),
  ].join('  ');
}

/** From the answer on. */
function talkTimeOf({ answeredAt, endedAt }: CallSummary, now: Date): string | undefined {
  if (answeredAt === undefined) return undefined;
  const end = endedAt === undefined ? now.getTime() : Date.parse(endedAt);
  // The gateway's clock may be ahead of ours.
  const talked = talkTime(Math.max(0, end - Date.parse(answeredAt)));
  return endedAt === undefined ? `${talked} so far` : talked;
}
