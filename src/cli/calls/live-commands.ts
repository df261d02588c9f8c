// Implements `offhook calls play`, `stop`, `dtmf`, `stream`, `transfer`, `record`, `opt-out` and
// `hangup`, which control a call while it's up. The results appear in the call's timeline.

import type { RecordAction } from '../../calls/recording/recording-contract.ts';
import { withoutQuery } from '../../calls/stream/stream-members.ts';
import { type AppOptions, withGateway } from '../app-session.ts';
import type { CliContext } from '../cli-context.ts';
import { CliError } from '../cli-error.ts';
import type { CommandMembers } from '../gateway-client.ts';
import { readHeaders, readNumber, readParameters, targetOf } from './dial-options.ts';
import { botOfCall } from './named-call.ts';

/** With `id`, the command can be repeated safely after its response was lost. */
export type LiveOptions = AppOptions & { readonly id?: string };
export type PlayOptions = LiveOptions & { readonly loop?: boolean };
export type KeyOptions = LiveOptions & { readonly duration?: string };
export type StreamOptions = LiveOptions & {
  readonly none?: boolean;
  /** `name=value` */
  readonly parameter?: readonly string[];
};
export type TransferOptions = LiveOptions & {
  readonly mode?: 'bridge' | 'refer';
  readonly timeout?: string;
  readonly caller?: string;
  readonly callerName?: string;
  readonly trunk?: string;
  /** `Name: value` */
  readonly header?: readonly string[];
  readonly keepStream?: boolean;
  readonly onFailure?: 'hangup' | 'stay';
};

export async function playToCall(
  context: CliContext,
  callId: string,
  sound: string,
  options: PlayOptions,
): Promise<void> {
  const loop = options.loop === true ? { loop: true } : {};
  await send(context, callId, options, { command: 'play', sound, ...loop }, `playing ${sound}`);
}

export async function stopPlaying(
  context: CliContext,
  callId: string,
  options: LiveOptions,
): Promise<void> {
  await send(context, callId, options, { command: 'stop' }, 'stopped');
}

/** Sends DTMF digits. We don't print the digits, because they may be a card number. */
export async function pressKeys(
  context: CliContext,
  callId: string,
  digits: string,
  { duration, ...options }: KeyOptions,
): Promise<void> {
  const durationMs =
    duration === undefined ? {} : { durationMs: readNumber('--duration', duration) };
  await send(context, callId, options, { command: 'dtmf', digits, ...durationMs }, 'pressing keys');
}

/**
 * Streams the call to a different bot. We don't print the URL's query, because it may contain a
 * secret.
 */
export async function streamCall(
  context: CliContext,
  callId: string,
  url: string | undefined,
  { none = false, parameter = [], ...options }: StreamOptions,
): Promise<void> {
  if (none === (url !== undefined)) throw new CliError('Give either a URL or --none.');
  if (none && parameter.length > 0) throw new CliError('--parameter requires a URL.');
  const parameters =
    parameter.length === 0 ? {} : { parameters: readParameters('--parameter', parameter) };
  const command = { command: 'stream' as const, url: url ?? null, ...parameters };
  const done =
    url === undefined ? 'disconnecting the bot' : `streaming to the bot at ${withoutQuery(url)}`;
  await send(context, callId, options, command, done);
}

export async function transferCall(
  context: CliContext,
  callId: string,
  to: string,
  options: TransferOptions,
): Promise<void> {
  const { mode, timeout, caller, callerName, trunk, header = [], keepStream, onFailure } = options;
  const target = targetOf(to);
  const command = {
    ...{ command: 'transfer' as const, to: target },
    ...{ mode, caller, callerName, trunk, keepStream, onFailure },
    timeoutMs: timeout === undefined ? undefined : readNumber('--timeout', timeout),
    headers: header.length === 0 ? undefined : readHeaders(header),
  };
  await send(context, callId, options, command, `transferring to ${target}`);
}

export async function recordCall(
  context: CliContext,
  callId: string,
  action: RecordAction,
  options: LiveOptions,
): Promise<void> {
  await send(context, callId, options, { command: 'record', action }, `recording: ${action}`);
}

export async function optOut(
  context: CliContext,
  callId: string,
  options: LiveOptions,
): Promise<void> {
  await send(context, callId, options, { command: 'optOut' }, 'suppressing the number');
}

export async function hangUpCall(
  context: CliContext,
  callId: string,
  options: LiveOptions,
): Promise<void> {
  await send(context, callId, options, { command: 'hangup' }, 'hanging up');
}

async function send(
  context: CliContext,
  call: string,
  { id, ...options }: LiveOptions,
  command: CommandMembers,
  done: string,
): Promise<void> {
  await withGateway(context, options, async (client) => {
    const { bot, callId } = await botOfCall(client, options, call);
    const named = id === undefined ? command : { ...command, id };
    const { commandId } = await bot.command(callId, named);
    context.print(`${done} (${commandId})`);
  });
}
