// offhook calls and offhook context: what the gateway knows of calls, of every bot of the app unless one is named.

import { lineOf } from '../../calls/contract/event-table.ts';
import type { CallSummary } from '../../interactions/call-queries.ts';
import { type AppOptions, botOfCall, withGateway } from '../app-session.ts';
import type { CliContext } from '../cli-context.ts';
import { CliError } from '../cli-error.ts';
import type { OverviewClient } from '../gateway-client.ts';

export type ListCallsOptions = AppOptions & {
  readonly status?: string;
  readonly limit: string;
  readonly json?: boolean;
};
export type ShowCallOptions = AppOptions & { readonly json?: boolean };

export async function listCalls(context: CliContext, options: ListCallsOptions): Promise<void> {
  if (!/^[1-9]\d{0,5}$/.test(options.limit)) throw new CliError('--limit must be 1 to 999999');
  const limit = Number(options.limit);
  const written: (call: CallSummary) => string =
    options.json === true ? JSON.stringify : summaryLine;
  await withGateway(context, options, async (client) => {
    let count = 0;
    for await (const call of callsOf(client.overview(options.bot), options)) {
      if (count === limit) {
        context.note('There are more; see --limit.');
        return;
      }
      context.print(written(call));
      count += 1;
      if (context.interrupted.aborted) return;
    }
    if (count === 0) context.note('No calls.');
  });
}

/** Page after page. */
async function* callsOf(
  overview: OverviewClient,
  { status }: ListCallsOptions,
): AsyncGenerator<CallSummary> {
  let cursor: string | undefined;
  do {
    const page = await overview.calls({
      ...(status === undefined ? {} : { status }),
      ...(cursor === undefined ? {} : { cursor }),
    });
    yield* page.calls;
    cursor = page.nextCursor;
  } while (cursor !== undefined);
}

export async function showCall(
  context: CliContext,
  callId: string,
  options: ShowCallOptions,
): Promise<void> {
  await withGateway(context, options, async (client) => {
    const call = await client.overview(options.bot).call(callId);
    if (options.json === true) {
      context.print(JSON.stringify(call));
      return;
    }
    context.print(summaryLine(call));
    const { queuePosition, metadata, timeline } = call;
    if (queuePosition !== undefined)
      context.print(`waits for its trunk as number ${queuePosition}`);
    if (Object.keys(metadata).length > 0) context.print(`metadata ${JSON.stringify(metadata)}`);
    for (const { time, type, data } of timeline) {
      context.print(`${time}  ${type.padEnd(9)}  ${lineOf(type, data)}`.trimEnd());
    }
  });
}

/** As a bot flow reads it. */
export async function showContext(
  context: CliContext,
  callId: string,
  options: AppOptions,
): Promise<void> {
  await withGateway(context, options, async (client) => {
    const bot = await botOfCall(client, options, callId);
    context.print(JSON.stringify(await bot.context(callId), undefined, 2));
  });
}

function summaryLine(call: CallSummary): string {
  const { acceptedAt, callId, botId, target, status, outcome, reason } = call;
  // `completed  completed` would say it twice.
  const finer = outcome === undefined || outcome === status ? '' : `${outcome} `;
  const end = outcome === undefined ? [] : [`${finer}(${reason ?? ''})`];
  return [acceptedAt, callId, botId, target, status, ...end].join('  ');
}
