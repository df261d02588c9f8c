// Implements `offhook notifications list` and `replay`. These commands list a call's notifications
// with each attempt, list dead letters, and send dead letters again.

import { callIdOfEvent } from '../calls/contract/call-event.ts';
import type { NotificationView } from '../interactions/call-queries.ts';
import { parseDurationS } from '../lib/durations.ts';
import type { DeadLetter } from '../notifier/dead-letters.ts';
import { type AppOptions, withGateway } from './app-session.ts';
import { botOfCall } from './calls/named-call.ts';
import type { CliContext } from './cli-context.ts';
import { CliError } from './cli-error.ts';
import type { BotClient, GatewayClient, OverviewClient } from './gateway-client.ts';
import { ambiguousIdMessage, uuidLength } from './id-prefix.ts';
import { readBody } from './notification-lines.ts';

export type ListOptions = AppOptions & { readonly failedSince?: string; readonly json?: boolean };
export type ReplayOptions = AppOptions & { readonly call?: string; readonly failedSince?: string };

/** Lists a call's notifications, or dead letters if the user didn't name a call. */
export async function listNotifications(
  context: CliContext,
  named: string | undefined,
  options: ListOptions,
): Promise<void> {
  const from = instantAgo(options.failedSince);
  if (named !== undefined && from !== undefined) {
    throw new CliError('Give a call or --failed-since, not both.');
  }
  await withGateway(context, options, async (client) => {
    if (named === undefined) {
      await listDeadLetters(context, client.overview(options.bot), from, options);
    } else {
      const { bot, callId } = await botOfCall(client, options, named);
      await listForCall(context, bot, callId, options);
    }
  });
}

async function listForCall(
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
    context.print(notificationLine(notification));
    const { attempts, replays } = notification;
    for (const { attempt, startedAt, durationMs, responseStatus, error } of attempts) {
      context.print(
        `   ${attempt}. ${startedAt}  ${responseStatus ?? error ?? 'no answer'}  ${durationMs} ms`,
      );
    }
    for (const { replayedAt, by } of replays) context.print(`   ${replayedAt}  replayed by ${by}`);
  }
}

function notificationLine(notification: NotificationView): string {
  const { sequence, eventId, state, failure, body } = notification;
  const why = failure === undefined ? '' : ` (${failure})`;
  return `#${sequence} ${describeBody(body)}  ${state}${why}  ${eventId}`;
}

async function listDeadLetters(
  context: CliContext,
  overview: OverviewClient,
  from: string | undefined,
  { json }: ListOptions,
): Promise<void> {
  let count = 0;
  for await (const letter of deadLetters(overview, from)) {
    context.print(json === true ? JSON.stringify(letter) : formatDeadLetter(letter));
    count += 1;
    if (context.interrupted.aborted) break;
  }
  if (count === 0) context.note('No dead letters.');
}

/** Yields all dead letters, page by page. */
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

function formatDeadLetter(letter: DeadLetter): string {
  const { eventId, callId, botId, sequence, failedAt, failure } = letter;
  const { attempts, lastStatus, lastError } = letter;
  const last = lastStatus ?? lastError ?? 'not tried';
  const place = sequence === undefined ? 'recording' : `#${sequence}`;
  return `${failedAt}  ${callId}  ${botId}  ${place} ${describeBody(letter.body)}  ${failure}  ${attempts} attempts, last ${last}  ${eventId}`;
}

export async function replayNotifications(
  context: CliContext,
  event: string | undefined,
  options: ReplayOptions,
): Promise<void> {
  const { call, failedSince } = options;
  const given = [event, call, failedSince].filter((what) => what !== undefined);
  if (given.length !== 1)
    throw new CliError('Give exactly one of: an event id, --call, --failed-since.');
  const from = instantAgo(failedSince);
  await withGateway(context, options, async (client) => {
    if (event !== undefined) {
      const { bot, eventId } = await findDeadLetter(client, options, event);
      context.print(JSON.stringify(await bot.replayOne(eventId)));
      return;
    }
    let count = 0;
    const replayAll = async (bot: BotClient, selection: Parameters<BotClient['replay']>[0]) => {
      for (let more = true; more && !context.interrupted.aborted; ) {
        const result = await bot.replay(selection);
        count += result.replayed;
        more = result.more;
      }
    };
    if (call !== undefined) {
      const { bot, callId } = await botOfCall(client, options, call);
      await replayAll(bot, { callId });
    } else if (from !== undefined) {
      for (const botId of await botsWithDeadLetters(client.overview(options.bot), from)) {
        await replayAll(client.bot(botId), { from });
      }
    }
    context.print(JSON.stringify({ replayed: count }));
  });
}

/**
 * Finds a dead letter by the first characters of its id, which contains the call's UUID:
 * `evt-<uuid>-<which>`.
 *
 * @throws CliError if no dead letter or several dead letters match
 */
async function findDeadLetter(
  client: GatewayClient,
  options: AppOptions,
  text: string,
): Promise<{ readonly bot: BotClient; readonly eventId: string }> {
  const start = text.replace(/^evt-/, '');
  const { bot, callId } = await botOfCall(client, options, `call-${start.slice(0, uuidLength)}`);
  // If the id is complete, the gateway will report any problem with it.
  if (callIdOfEvent(text) === callId) return { bot, eventId: text };
  const failed = (await bot.notifications(callId)).filter(({ state }) => state === 'failed');
  const letters = failed.filter(({ eventId }) => eventId.startsWith(`evt-${start}`));
  const [letter, ...others] = letters;
  if (letter === undefined) throw new CliError(`${callId} has no dead letter evt-${start}.`);
  if (others.length > 0)
    throw new CliError(ambiguousIdMessage(`evt-${start}`, letters.map(notificationLine)));
  return { bot, eventId: letter.eventId };
}

/** Returns the bots that have dead letters since `from`. */
async function botsWithDeadLetters(
  overview: OverviewClient,
  from: string,
): Promise<ReadonlySet<string>> {
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

function describeBody(body: unknown): string {
  const read = readBody(body);
  return [read?.status, read?.machineDetection, read?.event?.type]
    .filter((part) => part !== undefined)
    .join(' ');
}
