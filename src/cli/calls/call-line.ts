// Formats a call as a single line with its time, ids, target, state and outcome.

import type { CallSummary } from '../../interactions/call-queries.ts';
import { talkTime, whoPickedUp } from '../picked-up.ts';

/** Formats a call. The talk time of a call that is still up is counted until `now`. */
export function callLine(call: CallSummary, now: Date): string {
  const { acceptedAt, callId, botId, target, status, outcome, reason } = call;
  const { verdict, verdictReason, beep } = call;
  const who = whoPickedUp({ verdict, reason: verdictReason, beep });
  const answered = [who, formatTalkTime(call, now)].filter((part) => part !== undefined).join(', ');
  // We omit an outcome that equals the status. Otherwise we'd print `completed completed`.
  const distinctOutcome = outcome === undefined || outcome === status ? '' : `${outcome} `;
  return [
    ...[acceptedAt, callId, botId, target, status],
    ...(answered === '' ? [] : [answered]),
    ...(outcome === undefined ? [] : [`${distinctOutcome}(${reason ?? ''})`]),
  ].join('  ');
}

/**
 * Formats the time that has passed since the answer. Returns undefined if the call wasn't answered.
 */
function formatTalkTime({ answeredAt, endedAt }: CallSummary, now: Date): string | undefined {
  if (answeredAt === undefined) return undefined;
  const end = endedAt === undefined ? now.getTime() : Date.parse(endedAt);
  // The gateway's clock may be ahead of ours.
  const talked = talkTime(Math.max(0, end - Date.parse(answeredAt)));
  return endedAt === undefined ? `${talked} so far` : talked;
}
