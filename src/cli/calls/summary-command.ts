// Implements `offhook calls summary` and `offhook calls callers`, which print a period's totals as
// tables.

import type { CallCounts, CallersSummary, CallsSummary } from '../../interactions/call-queries.ts';
import { type AppOptions, withGateway } from '../app-session.ts';
import type { CliContext } from '../cli-context.ts';
import { type PeriodOptions, periodQuery } from './calls-command.ts';

export type SummaryOptions = AppOptions & PeriodOptions & { readonly json?: boolean };

export async function summarizeCalls(context: CliContext, options: SummaryOptions): Promise<void> {
  await withGateway(context, options, async (client) => {
    const summary = await client.overview(options.bot).summary(periodQuery(options));
    if (options.json === true) context.print(JSON.stringify(summary));
    else for (const line of linesOf(summary)) context.print(line);
  });
}

export async function summarizeCallers(
  context: CliContext,
  options: SummaryOptions,
): Promise<void> {
  await withGateway(context, options, async (client) => {
    const summary = await client.overview(options.bot).callers(periodQuery(options));
    if (options.json === true) context.print(JSON.stringify(summary));
    else for (const line of callerLines(summary)) context.print(line);
  });
}

function callerLines({ from, to, timeZone, callers, more }: CallersSummary): string[] {
  return [
    `${from} to ${to} (${timeZone})`,
    lineOf('caller', ['accepted', 'answered', 'blocked', 'share']),
    ...callers.map(({ caller, accepted, answered, blocked, blockedShare }) =>
      lineOf(caller, [
        ...[accepted, answered, blocked].map(String),
        `${(blockedShare * 100).toFixed(1)}%`,
      ]),
    ),
    ...(more === true ? ['More caller IDs have calls.'] : []),
  ];
}

function linesOf({ from, to, timeZone, total, bots, trunks, days }: CallsSummary): string[] {
  const outcomes = Object.entries(total.outcomes).map(([outcome, calls]) => `${outcome} ${calls}`);
  return [
    `${from} to ${to} (${timeZone})`,
    lineOf('', ['accepted', 'answered', 'people', 'machines', 'minutes']),
    countsLine('total', total),
    ...(days.length > 1 ? days.map((one) => countsLine(one.day, one)) : []),
    ...bots.map((one) => countsLine(`bot ${one.botId}`, one)),
    ...trunks.map((one) =>
      countsLine(one.trunk === undefined ? 'no trunk' : `trunk ${one.trunk}`, one),
    ),
    ...(outcomes.length === 0 ? [] : [`outcomes: ${outcomes.join(', ')}`]),
  ];
}

function countsLine(name: string, { accepted, answered, people, machines, minutes }: CallCounts) {
  const counts = [accepted, answered, people, machines].map(String);
  return lineOf(name, [...counts, minutes.toFixed(2)]);
}

function lineOf(name: string, cells: readonly string[]): string {
  return `${name.padEnd(24)}${cells.map((cell) => cell.padStart(12)).join('')}`;
}
