// Lines for developers who are watching calls. We print one line for each call event, and one for
// each attempt to notify the call's receiver. The lines never contain phone numbers, DTMF digits or
// spoken words.

import { LRUCache } from 'lru-cache';
import type { CallEvent } from '../calls/contract/call-event.ts';
import { watchedLineOf } from '../calls/contract/event-table.ts';
import { upTo } from '../lib/growing-cache.ts';
import type { Delivery } from '../notifier/delivery.ts';
import { inUnits } from './stop-lines.ts';

export type CallLine = { readonly callId: string; readonly text: string };

export type CallWatcher = {
  onEvent(event: CallEvent): void;
  /** `origin` is the receiver's scheme, host and port. Undefined if we no longer have the call. */
  onDelivery(delivery: Delivery, origin: string | undefined): void;
};

/**
 * How many event ids we remember. If it's unclear whether an event's first publication succeeded,
 * the event is published again and can arrive twice. It's enough to remember the events in flight.
 */
const maxKnown = 10_000;

export function createCallWatcher(print: (line: CallLine) => void): CallWatcher {
  const known = new LRUCache<string, true>(upTo(maxKnown));
  const isNew = (id: string): boolean => {
    if (known.has(id)) return false;
    known.set(id, true);
    return true;
  };
  return {
    onEvent: (event) => {
      if (isNew(event.id)) print({ callId: event.callId, text: masked(watchedLineOf(event)) });
    },
    onDelivery: (delivery, origin) => {
      const text = masked(describeDelivery(delivery, origin));
      print({ callId: delivery.record.callId, text });
    },
  };
}

/**
 * Masks phone numbers and control characters. Reason phrases are written by the far end of a call,
 * and may contain the dialed number or terminal escape sequences.
 */
function masked(text: string): string {
  return text.replaceAll(/\p{C}/gu, '?').replaceAll(/\+?\d{7,}/g, '***');
}

function describeDelivery(delivery: Delivery, origin: string | undefined): string {
  const { notification, record } = delivery;
  const to = origin === undefined ? 'no receiver' : new URL(origin).host;
  return `→ ${to} #${notification.sequence} ${statusOf(notification.body)}: ${record.error ?? record.responseStatus ?? ''}${whatNext(delivery)}`;
}

function whatNext({ verdict, record }: Delivery): string {
  switch (verdict.kind) {
    case 'delivered':
      return record.attempt === 1 ? '' : `, attempt ${record.attempt}`;
    case 'retry':
      return `, again in ${inUnits(verdict.at - record.at.getTime())}`;
    case 'failed':
      return `, given up (${verdict.failure})`;
  }
}

/**
 * Returns a notification's status. For `Call-In-Progress`, returns the detection result instead,
 * and for `Event`, the event's type.
 */
function statusOf(body: string): string {
  const { status, machineDetection, event } = JSON.parse(body) as {
    readonly status?: string;
    readonly machineDetection?: string;
    readonly event?: { readonly type?: string };
  };
  if (status === 'Event') return event?.type ?? status;
  return String(status === 'Call-In-Progress' ? (machineDetection ?? status) : status);
}
