// Implements `offhook calls list`, `offhook calls show` and `offhook context`, which read calls.
// They include all of the app's bots, unless the command names a bot.

import { lineOf } from '../../calls/contract/event-table.ts';
import type { CallSummary } from '../../interactions/call-queries.ts';
import { type AppOptions, withGateway } from '../app-session.ts';
import type { CliContext } from '../cli-context.ts';
import { CliError } from '../cli-error.ts';
import type { OverviewClient } from '../gateway-client.ts';
import { callLine } from './call-line.ts';
import { botOfCall, findCallId } from './named-call.ts';

export type ListCallsOptions = AppOptions & {
  readonly status?: string;
  readonly limit: string;
  readonly json?: boolean;
};
export type ShowCallOptions = AppOptions & { readonly json?: boolean };

export async function listCalls(context: CliContext, options: ListCallsOptions): Promise<void> {
  if (!/^[1-9]\d{0,5}$/.test(options.limit)) throw new CliError('--limit must be 1 to 999999');
  const limit = Number(options.limit);
  const format: (call: CallSummary) => string =
    options.json === true ? JSON.stringify : (call) => callLine(call, new Date());
  await withGateway(context, options, async (client) => {
    let count = 0;
    for await (const call of callsOf(client.overview(options.bot), options)) {
      if (count === limit) {
        context.note('There are more calls; raise --limit to list them.');
        return;
      }
      context.print(format(call));
      count += 1;
      if (context.interrupted.aborted) return;
    }
    if (count === 0) context.note('No calls.');
  });
}

/** Yields all calls, page by page. */
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
  named: string,
  options: ShowCallOptions,
): Promise<void> {
  await withGateway(context, options, async (client) => {
    const overview = client.overview(options.bot);
    const call = await overview.call(await findCallId(overview, named));
    if (options.json === true) {
      context.print(JSON.stringify(call));
      return;
    }
    context.print(callLine(call, new Date()));
    const { queuePosition, metadata, timeline } = call;
    if (queuePosition !== undefined)
      context.print(`waits for its trunk at position ${queuePosition}`);
    if (Object.keys(metadata).length > 0) context.print(`metadata ${JSON.stringify(metadata)}`);
    for (const { time, type, data } of timeline) {
      context.print(`${time}  ${type.padEnd(9)}  ${lineOf(type, data)}`.trimEnd());
    }
  });
}

/** Prints a call's context the way a bot flow reads it. */
export async function showContext(
  context: CliContext,
  named: string,
  options: AppOptions,
): Promise<void> {
  await withGateway(context, options, async (client) => {
    const { bot, callId } = await botOfCall(client, options, named);
    context.print(JSON.stringify(await bot.context(callId), undefined, 2));
  });
}
