// Builds a transfer's events, and its summary for the terminal event. Pure, like `call-events.ts`.

import { type CallProgress, type NextEvent, nextEvent } from '../life/call-events.ts';
import type { Ongoing } from '../life/call-setup.ts';
import { uriOfTarget } from '../target/dial-target.ts';
import type { TransferSummary } from './transfer-contract.ts';
import type { TransferMeaning } from './transfer-report.ts';

/** The next event, along with the transfer's new summary. */
type NextTransferEvent = NextEvent & { readonly transfer: TransferSummary };

export function transferRingingEvent(
  progress: CallProgress,
  at: Date,
  ongoing: Ongoing,
  response: { readonly sipStatus: number; readonly earlyMedia: boolean },
): NextEvent {
  const { sipStatus, earlyMedia } = response;
  const data = { ...namesOf(ongoing), sipStatus, earlyMedia };
  return nextEvent(progress, 'transfer-ringing', at, data);
}

export function transferAnsweredEvent(
  progress: CallProgress,
  at: Date,
  ongoing: Ongoing,
): NextTransferEvent {
  const names = namesOf(ongoing);
  const transfer = { ...names, answeredAt: at.toISOString(), outcome: 'completed' as const };
  return { ...nextEvent(progress, 'transfer-answered', at, names), transfer };
}

export function transferCompletedEvent(
  progress: CallProgress,
  at: Date,
  ongoing: Ongoing,
  outcome: 'completed' | 'transferred',
): NextTransferEvent {
  const answeredAt = progress.transfer?.answeredAt ?? at.toISOString();
  const durationMs = Math.max(0, at.getTime() - new Date(answeredAt).getTime());
  const { msToTwoWayAudio } = progress.transfer ?? {};
  const transfer: TransferSummary = {
    ...namesOf(ongoing),
    ...{ outcome, answeredAt, durationMs },
    ...(msToTwoWayAudio === undefined ? {} : { msToTwoWayAudio }),
  };
  return { ...nextEvent(progress, 'transfer-completed', at, transfer), transfer };
}

export function transferFailedEvent(
  progress: CallProgress,
  at: Date,
  ongoing: Ongoing,
  why: TransferMeaning,
): NextTransferEvent {
  const { outcome, reason, sipStatus, cause } = why;
  const names = namesOf(ongoing);
  const status = {
    ...(sipStatus === undefined ? {} : { sipStatus }),
    ...(cause === undefined ? {} : { cause }),
  };
  const data = { ...names, outcome, reason, ...status };
  const transfer = { ...names, outcome, ...status };
  return { ...nextEvent(progress, 'transfer-failed', at, data), transfer };
}

function namesOf({ commandId, transfer: { to, mode } }: Ongoing) {
  return { ...(commandId === undefined ? {} : { commandId }), to: uriOfTarget(to), mode };
}
