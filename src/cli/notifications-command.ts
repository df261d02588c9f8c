// offhook notifications list and replay: what was sent for a call and how each attempt went, what was given up, and how to
// have it sent again.

import type { DeadLetter } from '../notifier/dead-letters.ts';
import { type CliContext, requireGateway } from './cli-context.ts';
import { CliError } from './cli-error.ts';
import { parseDurationS } from './durations.ts';
import { createGatewayClient, type GatewayClient } from './gateway-client.ts';
import { readBody } from './notification-lines.ts';
import { openTokens } from './tokens.ts';

type AppOptions = { readonly bot: string; readonly app?: string };
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
  await withClient(context, options, async (client) => {
    if (callId === undefined) await listDeadLetters(context, client, from, options);
    else await listOfCall(context, client, callId, options);
  });
}

async function listOfCall(
  context: CliContext,
  client: GatewayClient,
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
  client: GatewayClient,
  from: string | undefined,
  { json }: ListOptions,
): Promise<void> {
  let cursor: string | undefined;
  let count = 0;
  do {
    const page = await client.deadLetters({
      ...(from === undefined ? {} : { from }),
      ...(cursor === undefined ? {} : { cursor }),
    });
    for (const letter of page.notifications) {
      context.print(json === true ? JSON.stringify(letter) : lineOf(letter));
    }
    count += page.notifications.length;
    cursor = page.nextCursor;
  } while (cursor !== undefined && !context.interrupted.aborted);
  if (count === 0) context.note('No dead letters.');
}

function lineOf(letter: DeadLetter): string {
  const { eventId, callId, sequence, failedAt, failure, attempts, lastStatus, lastError } = letter;
  const last = lastStatus ?? lastError ?? 'not tried';
  return `${failedAt}  ${callId}  #${sequence} ${wordsOf(letter.body)}  ${failure}  ${attempts} attempts, last ${last}  ${eventId}`;
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
  await withClient(context, options, async (client) => {
    if (eventId !== undefined) {
      context.print(JSON.stringify(await client.replayOne(eventId)));
      return;
    }
    let count = 0;
    let more = true;
    while (more && !context.interrupted.aborted) {
      const result = await client.replay({
        ...(call === undefined ? {} : { callId: call }),
        ...(from === undefined ? {} : { from }),
      });
      count += result.replayed;
      more = result.more;
    }
    context.print(JSON.stringify({ replayed: count }));
  });
}

async function withClient(
  context: CliContext,
  { app: appId, bot }: AppOptions,
  work: (client: GatewayClient) => Promise<void>,
): Promise<void> {
  await using app = await openTokens(context, appId);
  const { httpUrl } = await requireGateway(context);
  await work(createGatewayClient(httpUrl, app.tokens, bot));
}

function instantAgo(duration: string | undefined): string | undefined {
  if (duration === undefined) return undefined;
  const ageS = parseDurationS(duration);
  if (ageS === undefined) throw new CliError('--failed-since must be e.g. 90s, 15m, 2h or 7d');
  return new Date(Date.now() - ageS * 1_000).toISOString();
}

function wordsOf(body: unknown): string {
  const read = readBody(body);
  return [read?.status, read?.machineDetection].filter((part) => part !== undefined).join(' ');
}
