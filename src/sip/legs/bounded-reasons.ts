// Bounds the reasons in a leg's events. Most of them are reason phrases or Reason headers from the
// network, and end up in events, notifications and logs. Every leg reports through here, so nothing
// behind the SIP port needs to bound a reason again.

import type { LegEvent, ReferEvent } from '../../calls/ports.ts';
import { bounded, cleaned } from '../reason-header.ts';

/** Real reason phrases have a few words. */
const maxReasonLength = 200;
/** Bounds the work for a phrase of many kilobytes, of which only the beginning is kept. */
const maxReadLength = 10 * maxReasonLength;

function boundedReason(reason: string): string {
  return bounded(cleaned(reason.slice(0, maxReadLength)), maxReasonLength);
}

function withBoundedReason<Reasoned extends { readonly reason: string }>(of: Reasoned): Reasoned {
  return { ...of, reason: boundedReason(of.reason) };
}

export function boundedLegEvent(event: LegEvent): LegEvent {
  if (event.kind === 'provisional') return withBoundedReason(event);
  if (event.kind === 'failed') return { ...event, failure: withBoundedReason(event.failure) };
  if (event.kind === 'ended') return { ...event, end: withBoundedReason(event.end) };
  if (event.kind === 'attemptFailed') {
    return { ...event, attempt: withBoundedReason(event.attempt) };
  }
  return event;
}

export function boundedReferEvent(event: ReferEvent): ReferEvent {
  if (event.kind === 'failed') return { ...event, failure: withBoundedReason(event.failure) };
  return event.kind === 'unheard' ? withBoundedReason(event) : event;
}
