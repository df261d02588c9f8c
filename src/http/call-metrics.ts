// Counts how calls end: by outcome and fault, and for each trunk by the refusals that suggest that
// the carrier or the callee takes the calls for spam.

import { Counter, type Registry } from 'prom-client';
import { type CallEnd, endsOfAllKinds, faultOf } from '../calls/life/call-outcome.ts';

export type End = Pick<CallEnd, 'outcome' | 'sipStatus'>;

/**
 * 603 means that the callee declines, but carriers in the United States also send it for calls that
 * their analytics block. 607 (RFC 8197) marks a call as unwanted, and 608 (RFC 8688) says that
 * analytics rejected it.
 */
const spamStatuses: readonly number[] = [603, 607, 608];
const countedStatuses = [...spamStatuses.map(String), 'other'];

export type CallMetrics = {
  ended(end: End, trunk: string | undefined): void;
  /** Makes the counters of these trunks exist. */
  knowTrunks(trunks: readonly string[]): void;
};

// Make sure that every counter is 0 at the first scrape. If a counter first appeared with the value
// 1, Prometheus wouldn't see it rise.

export function callMetrics(registry: Registry): CallMetrics {
  const registers = [registry];
  const ended = new Counter({
    name: 'offhook_calls_ended_total',
    help: 'Calls that ended, by outcome and by the party at fault',
    labelNames: ['outcome', 'fault'],
    registers,
  });
  for (const end of endsOfAllKinds()) ended.inc(labelsOf(end), 0);
  const onTrunk = new Counter({
    name: 'offhook_trunk_calls_ended_total',
    help: 'Calls that ended on a trunk, by the SIP status if it is 603, 607 or 608',
    labelNames: ['trunk', 'sip_status'],
    registers,
  });
  const known = new Set<string>();
  const knowTrunks = (trunks: readonly string[]): void => {
    for (const trunk of trunks.filter((name) => !known.has(name))) {
      known.add(trunk);
      for (const sip_status of countedStatuses) onTrunk.inc({ trunk, sip_status }, 0);
    }
  };
  return {
    knowTrunks,
    ended(end, trunk) {
      ended.inc(labelsOf(end));
      if (trunk === undefined) return;
      knowTrunks([trunk]);
      onTrunk.inc({ trunk, sip_status: statusLabel(end.sipStatus) });
    },
  };
}

function labelsOf(end: End): { readonly outcome: string; readonly fault: string } {
  return { outcome: end.outcome, fault: faultOf(end) ?? 'none' };
}

function statusLabel(sipStatus: number | undefined): string {
  return sipStatus !== undefined && spamStatuses.includes(sipStatus) ? String(sipStatus) : 'other';
}
