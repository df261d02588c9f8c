// What happens to calls, in lines for somebody who watches: one for each step of a call, one for each attempt to notify its
// receiver. No numbers, no digits that were pressed, nothing that was said.

import type { AmdEvent } from '../calls/contract/amd-event.ts';
import type { CallEvent, DataOf, EndData } from '../calls/contract/call-event.ts';
import type { Delivery } from '../notifier/delivery.ts';
import { inUnits, seconds } from './durations.ts';

export type CallLine = { readonly callId: string; readonly text: string };

export type CallWatcher = {
  onFact(fact: CallEvent): void;
  /** `origin`: of the receiver; undefined where the call is gone. */
  onDelivery(delivery: Delivery, origin: string | undefined): void;
};

/** A fact is stated again where it may not have been published; more than are under way at once need not be known. */
const maxKnown = 10_000;

export function createCallWatcher(print: (line: CallLine) => void): CallWatcher {
  const known = new Set<string>();
  const isNew = (id: string): boolean => {
    if (known.has(id)) return false;
    known.add(id);
    for (const oldest of known) {
      if (known.size <= maxKnown) break;
      known.delete(oldest);
    }
    return true;
  };
  return {
    onFact: (fact) => {
      if (isNew(fact.id)) print({ callId: fact.callId, text: shown(describeFact(fact)) });
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

function describeFact(fact: CallEvent): string {
  switch (fact.type) {
    case 'queued':
      return `queued by ${fact.appId} for bot ${fact.botId}${fact.data.trunk === undefined ? '' : `, trunk ${fact.data.trunk}`}`;
    case 'dialing':
      return describeDialing(fact.data);
    case 'ringing': {
      const { sipStatus, sipReason, earlyMedia } = fact.data;
      return `ringing (${sipStatus} ${sipReason}${earlyMedia ? ', early media' : ''})`;
    }
    case 'answered':
      return `answered after ringing ${seconds(fact.data.ringDurationInMS)}`;
    case 'amd':
      return describeDetection(fact.data.amd);
    case 'dtmf':
      return 'a digit was pressed';
    case 'completed':
    case 'failed':
      return describeEnd(fact.type, fact.data);
  }
}

function describeDialing({ gateway, attempt, failedAttempts }: DataOf<'dialing'>): string {
  const last = failedAttempts?.at(-1);
  if (last === undefined) return `dialing over ${gateway}`;
  const why = [last.sipStatus, last.reason].filter((part) => part !== undefined).join(' ');
  return `dialing over ${gateway}, gateway ${attempt}, because ${last.gateway} failed: ${why}`;
}

function describeDetection({ event, reason, words }: AmdEvent): string {
  const heard = words === undefined || words === 0 ? '' : `, ${words} words`;
  return `${event} (${reason}${heard})`;
}

function describeEnd(type: 'completed' | 'failed', data: EndData): string {
  const { reason, reasonCode, outcome, callDurationMs } = data;
  if (type === 'failed') return `failed: ${reason} (${outcome})`;
  const why = outcome === 'completed' ? reasonCode : `${reasonCode}, ${outcome}`;
  return `completed: ${why}, ${seconds(callDurationMs ?? 0)} after the answer`;
}

function describeDelivery(delivery: Delivery, origin: string | undefined): string {
  const { notification, record } = delivery;
  const to = origin === undefined ? 'nobody' : new URL(origin).host;
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

/** `Answered`, or what was detected: that says more than `Call-In-Progress`. */
function statusOf(body: string): string {
  const { status, machineDetection } = JSON.parse(body) as {
    readonly status?: unknown;
    readonly machineDetection?: unknown;
  };
  return String(status === 'Call-In-Progress' ? (machineDetection ?? status) : status);
}
