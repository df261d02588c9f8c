// What happens to calls, in lines for a developer who watches: one for each step of a call, one for each attempt to notify its
// receiver. No numbers, no digits that were pressed, nothing that was said.

import { LRUCache } from 'lru-cache';
import type { CallEvent } from '../calls/contract/call-event.ts';
import { watchedLineOf } from '../calls/contract/event-table.ts';
import type { Delivery } from '../notifier/delivery.ts';
import { inUnits } from './stop-lines.ts';

export type CallLine = { readonly callId: string; readonly text: string };

export type CallWatcher = {
  onEvent(event: CallEvent): void;
  /** `origin`: of the receiver; undefined where the call is gone. */
  onDelivery(delivery: Delivery, origin: string | undefined): void;
};

/** An event is stated again where it may not have been published; more than are under way at once need not be known. */
const maxKnown = 10_000;

export function createCallWatcher(print: (line: CallLine) => void): CallWatcher {
  const known = new LRUCache<string, true>({ max: maxKnown });
  const isNew = (id: string): boolean => {
    if (known.has(id)) return false;
    known.set(id, true);
    return true;
  };
  return {
    onEvent: (event) => {
      if (isNew(event.id)) print({ callId: event.callId, text: shown(watchedLineOf(event)) });
    },
    onDelivery: (delivery, origin) => {
      const text = shown(describeDelivery(delivery, origin));
      print({ callId: delivery.record.callId, text });
    },
  };
}

/** Reason phrases come from far ends: they may hold the number that was dialled, and what a terminal would obey. */
function shown(text: string): string {
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

/** @returns `Answered`, or what says more than `Call-In-Progress` and `Event`: the detection, the type */
function statusOf(body: string): string {
  const { status, machineDetection, event } = JSON.parse(body) as {
    readonly status?: string;
    readonly machineDetection?: string;
    readonly event?: { readonly type?: string };
  };
  if (status === 'Event') return event?.type ?? status;
  return String(status === 'Call-In-Progress' ? (machineDetection ?? status) : status);
}
