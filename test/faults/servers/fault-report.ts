// What users saw of one fault.

import type { StoredEvent } from '../stream-dump.ts';
import type { DialOutAnswer } from '../traffic.ts';
import type { Observations, Response } from './observations.ts';
import type { TalkerKind } from './population.ts';

/** The time of a fault: its begin, its end, and the end of what came of it. By `Date.now()`. */
export type Span = { readonly from: number; readonly to: number; readonly until: number };

export type Ringing = {
  readonly phones: number;
  /** Phones whose call is up. */
  readonly connected: number;
  /** Phones that picked up and were hung up, with the longest time that it took. */
  readonly hungUp: number;
  readonly hungUpAfterMs: number;
  /** Phones that stopped ringing before anybody picked up. */
  readonly unanswered: number;
};

export type FaultReport = {
  readonly fault: string;
  readonly span: Span;
  readonly people: Readonly<Record<TalkerKind, { readonly up: number; readonly lost: number }>>;
  /** When the last person was hung up, after the begin of the fault. */
  readonly lastLostMs: number | undefined;
  readonly answeredDuring: Ringing;
  readonly answeredAfter: Ringing;
  readonly gatewaysExited: number;
};

export type Seen = {
  readonly observations: Observations;
  readonly dialOuts: readonly DialOutAnswer[];
  readonly events: readonly StoredEvent[];
};

/** Describes a fault in the lines of the storm's report. */
export function describeFault(report: FaultReport, seen: Seen): readonly string[] {
  const { fault, span, people, lastLostMs, answeredDuring, answeredAfter } = report;
  const { observations, dialOuts, events } = seen;
  const isDuring = ({ at }: { readonly at: number }): boolean => at >= span.from && at < span.to;
  const isAfter = ({ at }: { readonly at: number }): boolean => at >= span.to && at < span.until;
  const during = dialOuts.filter(isDuring);
  const firstAccepted = dialOuts.find((answer) => isAfter(answer) && answer.status === 200);
  const notified = observations.notifications.filter(
    ({ at }) => at >= span.from && at < span.until,
  );
  const published = events.filter(({ event }) => {
    const at = Date.parse(event.time);
    return at >= span.from && at < span.until;
  });
  const commands = observations.commands.filter(isDuring);
  return [
    `${fault}, ${seconds(span.to - span.from)}${report.gatewaysExited === 0 ? '' : `, ${report.gatewaysExited} GATEWAYS EXITED`}`,
    `  people hung up: ${Object.entries(people)
      .map(([kind, { up, lost }]) => `${kind} ${lost} of ${up}`)
      .join(', ')}${lastLostMs === undefined ? '' : `; the last one after ${seconds(lastLostMs)}`}`,
    `  phones that picked up during it: ${describeRinging(answeredDuring)}`,
    `  phones that rang through it: ${describeRinging(answeredAfter)}`,
    `  dial-outs during it: ${describeDialOuts(during)}; the first one afterwards was accepted after ${firstAccepted === undefined ? 'never' : seconds(firstAccepted.at + firstAccepted.tookMs - span.to)}`,
    `  notifications: ${notified.filter(isDuring).length} during it, ${notified.filter(isAfter).length} afterwards; the latest was ${seconds(most(notified.map(({ lagMs }) => lagMs)))} late`,
    `  events: ${published.length}; the latest reached the stream after ${seconds(most(published.map(({ event, storedAt }) => storedAt - Date.parse(event.time))))}`,
    `  commands: at the owner ${describeStatuses(commands.filter(({ isOwner }) => isOwner))}; elsewhere ${describeStatuses(commands.filter(({ isOwner }) => !isOwner))}`,
    `  lists: ${describeStatuses(observations.lists.filter(isDuring))}`,
    `  /ready: ${describeReadiness(observations, span)}`,
  ];
}

function describeRinging({
  phones,
  connected,
  hungUp,
  hungUpAfterMs,
  unanswered,
}: Ringing): string {
  if (phones === 0) return 'none';
  const after = hungUp === 0 ? '' : ` after up to ${seconds(hungUpAfterMs)}`;
  return `${connected} of ${phones} connected, ${hungUp} hung up${after}, ${unanswered} stopped ringing`;
}

function describeDialOuts(answers: readonly DialOutAnswer[]): string {
  const named = answers.map(({ status, type }) =>
    status === 503
      ? `503 ${type?.split(':').at(-1) ?? ''}`.trim()
      : String(status ?? 'no response'),
  );
  return `${describeCounts(named)}; the slowest took ${seconds(most(answers.map(({ tookMs }) => tookMs)))}`;
}

function describeStatuses(responses: readonly Response[]): string {
  const named = responses.map(({ status }) => String(status ?? 'no response'));
  return `${describeCounts(named)}; the slowest took ${seconds(most(responses.map(({ tookMs }) => tookMs)))}`;
}

function describeCounts(names: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  const parts = [...counts].map(([name, count]) => `${count} × ${name}`);
  return parts.length === 0 ? 'none' : parts.join(', ');
}

/** Returns when each gateway first reported each state, counted from the begin of the fault. */
function describeReadiness({ readiness }: Observations, span: Span): string {
  const seen = new Map<string, number>();
  for (const { at, name, status, text } of readiness) {
    if (at < span.from || at >= span.until) continue;
    const state = `${name} ${status ?? ''} ${text}`;
    if (!seen.has(state)) seen.set(state, at - span.from);
  }
  return [...seen].map(([state, ms]) => `${state} (${seconds(ms)})`).join(', ');
}

const most = (numbers: readonly number[]): number => numbers.reduce((a, b) => Math.max(a, b), 0);

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;
