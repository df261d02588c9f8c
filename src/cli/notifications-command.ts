// offhook notifications list and replay: what was sent for a call and how each attempt went, what was given up, and how to
// have it sent again.

import { callIdOfEvent } from '../calls/contract/call-event.ts';
import type { DeadLetter } from '../notifier/dead-letters.ts';
import { type AppOptions, botOfCall, withGateway } from './app-session.ts';
import type { CliContext } from './cli-context.ts';
import { CliError } from './cli-error.ts';
import { parseDurationS } from './durations.ts';
import type { BotClient, OverviewClient } from './gateway-client.ts';
import { readBody } from './notification-lines.ts';

export type ListOptions = AppOptions & { readonly failedSince?: string; readonly json?: boolean };
export type ReplayOptions = AppOptions & { readonly call?: string; readonly failedSince?: string };

/** Without a call: dead letters. */
export async function listNotifications(
  context: CliContext,
  callId: string | undefined,
  options: ListOptions,
): Promise<void> {
  const from = instantAgo(options.failedSince);
  if (callId !== undefined && from !== undefined) {
    throw new CliError('Give a call or --failed-since, not both.');
  }
  await withGateway(context, options, async (client) => {
    if (callId === undefined) {
      await listDeadLetters(context, client.overview(options.bot), from, options);
    } else {
      const bot = await botOfCall(client, options, callId);
      await listOfCall(context, bot, callId, options);
    }
  });
}

async function listOfCall(
  context: CliContext,
  client: BotClient,
  callId: string,
  options: ListOptions,
): Promise<void> {
  const notifications = await client.notifications(callId);
  if (notifications.length === 0) context.note('No notification yet, or no notify URL.');
  for (const notification of notifications) {
    if (options.json === true) {
      context.print(JSON.stringify(notification));
      continue;
    }
    const { sequence, eventId, state, failure, attempts, replays } = notification;
    const why = failure === undefined ? '' : ` (${failure})`;
    context.print(`#${sequence} ${wordsOf(notification.body)}  ${state}${why}  ${eventId}`);
    for (const { attempt, startedAt, durationMs, responseStatus, error } of attempts) {
      context.print(
        `   ${attempt}. ${startedAt}  ${responseStatus ?? error ?? 'no answer'}  ${durationMs} ms`,
      );
    }
    for (const { replayedAt, by } of replays) context.print(`   ${replayedAt}  replayed by ${by}`);
  }
}

async function listDeadLetters(
  context: CliContext,
  overview: OverviewClient,
  from: string | undefined,
  { json }: ListOptions,
): Promise<void> {
  let count = 0;
  for await (const letter of deadLetters(overview, from)) {
    context.print(json === true ? JSON.stringify(letter) : lineOf(letter));
    count += 1;
    if (context.interrupted.aborted) break;
  }
  if (count === 0) context.note('No dead letters.');
}

/** Page after page. */
async function* deadLetters(
  overview: OverviewClient,
  from: string | undefined,
): AsyncGenerator<DeadLetter> {
  let cursor: string | undefined;
  do {
    const page = await overview.deadLetters({
      ...(from === undefined ? {} : { from }),
      ...(cursor === undefined ? {} : { cursor }),
    });
    yield* page.notifications;
    cursor = page.nextCursor;
  } while (cursor !== undefined);
}

function lineOf(letter: DeadLetter): string {
  const { eventId, callId, botId, sequence, failedAt, failure } = letter;
  const { attempts, lastStatus, lastError } = letter;
  const last = lastStatus ?? lastError ?? 'not tried';
  return `${failedAt}  ${callId}  ${botId}  #${sequence} ${wordsOf(letter.body)}  ${failure}  ${attempts} attempts, last ${last}  ${eventId}`;
}

export async function replayNotifications(
  context: CliContext,
  eventId: string | undefined,
  options: ReplayOptions,
): Promise<void> {
  const { call, failedSince } = options;
  const given = [eventId, call, failedSince].filter((what) => what !== undefined);
  if (given.length !== 1)
    throw new CliError('Give an event id, --call or --failed-since: one of them.');
  const from = instantAgo(failedSince);
  await withGateway(context, options, async (client) => {
    if (eventId !== undefined) {
      // An event's id says whose call it is of; one that does not is of no call.
      const bot = await botOfCall(client, options, callIdOfEvent(eventId) ?? eventId);
      context.print(JSON.stringify(await bot.replayOne(eventId)));
      return;
    }
    let count = 0;
    const again = async (bot: BotClient, selection: Parameters<BotClient['replay']>[0]) => {
      for (let more = true; more && !context.interrupted.aborted; ) {
        const result = await bot.replay(selection);
        count += result.replayed;
        more = result.more;
      }
    };
    if (call !== undefined) await again(await botOfCall(client, options, call), { callId: call });
    else if (from !== undefined) {
      for (const botId of await botsOf(client.overview(options.bot), from)) {
        await again(client.bot(botId), { from });
      }
    }
    context.print(JSON.stringify({ replayed: count }));
  });
}

/** Those with dead letters since then. */
async function botsOf(overview: OverviewClient, from: string): Promise<ReadonlySet<string>> {
  const bots = new Set<string>();
  for await (const { botId } of deadLetters(overview, from)) bots.add(botId);
  return bots;
}

function instantAgo(duration: string | undefined): string | undefined {
  if (duration === undefined) return undefined;
  const ageS = parseDurationS(duration);
  if (ageS === undefined) throw new CliError('--failed-since must be e.g. 90s, 15m, 2h or 7d');
  return new Date(Date.now() - ageS * 1_000).toISOString();
}

function wordsOf(body: unknown): string {
  const read = readBody(body);
  return [read?.status, read?.machineDetection, read?.event?.type]
    .filter((part) => part !== undefined)
    .join(' ');
}
