// Counts how calls end: by outcome and fault, and for each trunk by cause, by the refusals that
// suggest that the carrier or the callee takes the calls for spam, and by the share of calls that
// carriers block.

import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { type CallEnd, endsOfAllKinds, faultOf } from '../calls/life/call-outcome.ts';
import { ruleNames } from '../calls/rules/rule-words.ts';
import { CallerBlocks } from './caller-blocks.ts';

export type End = Pick<CallEnd, 'outcome' | 'sipStatus' | 'facts' | 'refusal'>;

/** `trunk` is undefined if the call needed none. */
export type EndedCall = {
  readonly trunk?: string | undefined;
  readonly caller?: string;
  /** How the call sounded (1 to 4.5). Undefined if nothing was heard of the person. */
  readonly mos?: number | undefined;
};

/**
 * 603 means that the callee declines, but carriers in the United States also send it for calls that
 * their analytics block, and not all of them say so. 607 (RFC 8197) marks a call as unwanted, and
 * 608 (RFC 8688) says that analytics rejected it.
 */
const spamStatuses: readonly number[] = [603, 607, 608];
const countedStatuses = [...spamStatuses.map(String), 'other'];

/** The causes of ITU-T Q.850 that networks send. All other numbers count as `other`. */
const knownCauses: readonly number[] = [
  ...[1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 18, 19, 20, 21, 22, 23, 25, 26, 27, 28, 29, 30, 31],
  ...[34, 38, 39, 40, 41, 42, 43, 44, 46, 47, 49, 50, 53, 55, 57, 58, 62, 63, 65, 66, 69, 70, 79],
  ...[81, 82, 83, 84, 85, 86, 87, 88, 90, 91, 95, 96, 97, 98, 99, 100, 101, 102, 103, 110, 111],
  127,
];
const countedCauses = [...knownCauses.map(String), 'other', 'none'];

export type CallMetrics = {
  ended(end: End, call: EndedCall): void;
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
  const notPermitted = new Counter({
    name: 'offhook_calls_not_permitted_total',
    help: 'Calls that a calling rule ended before they were answered, by the rule',
    labelNames: ['rule'],
    registers,
  });
  for (const rule of ruleNames) notPermitted.inc({ rule }, 0);
  const onTrunk = new Counter({
    name: 'offhook_trunk_calls_ended_total',
    help: 'Calls that ended on a trunk, by the SIP status if it is 603, 607 or 608',
    labelNames: ['trunk', 'sip_status'],
    registers,
  });
  const byCause = new Counter({
    name: 'offhook_calls_ended_by_cause_total',
    help: 'Calls that ended on a trunk, by the Q.850 cause that the carrier stated',
    labelNames: ['trunk', 'cause'],
    registers,
  });
  const sounded = new Histogram({
    name: 'offhook_call_mos',
    help: 'How answered calls on a trunk sounded: mean opinion score, 1 (bad) to 4.5',
    labelNames: ['trunk'],
    buckets: [1.5, 2, 2.5, 3, 3.5, 3.8, 4, 4.2, 4.3, 4.4],
    registers,
  });
  const callers = new CallerBlocks();
  new Gauge({
    name: 'offhook_trunk_caller_blocked_ratio',
    help: 'Largest share of calls of one caller ID that carriers blocked in the last hour',
    labelNames: ['trunk'],
    registers,
    collect() {
      this.reset();
      const worst = callers.worst(performance.now());
      for (const trunk of known) this.set({ trunk }, worst.get(trunk) ?? 0);
    },
  });
  const known = new Set<string>();
  const knowTrunks = (trunks: readonly string[]): void => {
    for (const trunk of trunks.filter((name) => !known.has(name))) {
      known.add(trunk);
      for (const sip_status of countedStatuses) onTrunk.inc({ trunk, sip_status }, 0);
      for (const cause of countedCauses) byCause.inc({ trunk, cause }, 0);
      sounded.zero({ trunk });
    }
  };
  return {
    knowTrunks,
    ended(end, { trunk, caller, mos }) {
      ended.inc(labelsOf(end));
      if (end.refusal !== undefined) notPermitted.inc({ rule: end.refusal.rule });
      if (trunk === undefined) return;
      knowTrunks([trunk]);
      onTrunk.inc({ trunk, sip_status: statusLabel(end.sipStatus) });
      byCause.inc({ trunk, cause: causeLabel(end.facts?.cause?.q850) });
      if (mos !== undefined) sounded.observe({ trunk }, mos);
      // The gateway's own failures say nothing about the caller ID.
      if (caller === undefined || faultOf(end) === 'gateway') return;
      callers.note(trunk, caller, end.outcome === 'blocked', performance.now());
    },
  };
}

function labelsOf(end: End): { readonly outcome: string; readonly fault: string } {
  return { outcome: end.outcome, fault: faultOf(end) ?? 'none' };
}

function statusLabel(sipStatus: number | undefined): string {
  return sipStatus !== undefined && spamStatuses.includes(sipStatus) ? String(sipStatus) : 'other';
}

function causeLabel(q850: number | undefined): string {
  if (q850 === undefined) return 'none';
  return knownCauses.includes(q850) ? String(q850) : 'other';
}
