// offhook call, calls, context and notifications, as they are typed.

import { type Command, Option } from 'commander';
import { interactionStatuses } from '../../calls/contract/call-words.ts';
import { noBeepChoices } from '../../calls/plans/plans.ts';
import { streamConnects } from '../../calls/stream/stream.ts';
import { transferFallbacks, transferModes, transferStarts } from '../../calls/transfer/transfer.ts';
import type { AppOptions } from '../app-session.ts';
import type { CliContext } from '../cli-context.ts';
import type { ListOptions, ReplayOptions } from '../notifications-command.ts';
import type { CallOptions } from './call-command.ts';
import type { ListCallsOptions, ShowCallOptions } from './calls-command.ts';
import type {
  KeyOptions,
  LiveOptions,
  PlayOptions,
  StreamOptions,
  TransferOptions,
} from './live-commands.ts';

/** The dev app may use every bot; this one needs no thought. */
const defaultBot = 'dev-bot';

// Loaded when they are asked for, so that each command starts without the others.
const callsCommands = () => import('./calls-command.ts');
const liveCommands = () => import('./live-commands.ts');
const notificationsCommands = () => import('../notifications-command.ts');

export function addCallCommands(program: Command, createContext: () => CliContext): void {
  addPlacing(program, createContext);
  const calls = program
    .command('calls')
    .description(
      'calls of every bot of the app; of an id its first 4 characters or more are enough',
    );
  addReading(program, calls, createContext);
  addLive(calls, createContext);
  addNotifications(program, createContext);
}

function addPlacing(program: Command, createContext: () => CliContext): void {
  const call = program
    .command('call <target>')
    .description('place a call: tel:+15551234567, sip:user@host, or a name of the sandbox (person)')
    .option(
      '--notify <url>',
      'URL for notifications; with --follow and without it, this command listens (dev app only)',
    )
    .option(
      '--notify-events <list>',
      'events to be notified of beside the four statuses: ringing,dtmf,transfer-* or *',
    )
    .addOption(several('--header <name: value>', 'header to send along with notifications'))
    .addOption(
      new Option('--amd <mode>', 'machine detection')
        .choices(['detect', 'disconnect', 'disabled'])
        .default('disabled'),
    )
    .addOption(several('--timer <name=ms>', 'timer of detection, e.g. noSpeechTimeoutMs=3000'))
    .option('--threshold-word-count <number>', 'strict rule: that many words make a machine')
    .option('--metadata <json>', 'JSON object that the bot finds in the context of the call');
  withPlans(withStream(call))
    .option('--bot <id>', 'bot', defaultBot)
    .option('--app <id>', 'app that asks; left out: the dev app')
    .option('--caller <number>', 'user part of the caller ID', '+12025550199')
    .option('--trunk <name>', 'trunk; left out: the default one')
    .option('--timeout <ms>', 'how long to ring')
    .option('--max-duration <ms>', 'how long the call may last from the answer; also e.g. 90s, 10m')
    .option('--follow', 'print what happens until the call ended; Ctrl-C hangs up')
    .action(async (target: string, options: CallOptions) => {
      const { placeCall } = await import('./call-command.ts');
      await placeCall(createContext(), target, options);
    });
}

function withStream(command: Command): Command {
  return command
    .option(
      '--stream-url <url>',
      'ws or wss URL of the bot that takes the audio; left out: its own',
    )
    .addOption(
      new Option('--stream-connect <when>', 'when the bot gets it').choices(streamConnects),
    )
    .addOption(several('--stream-parameter <name=value>', 'told to the bot'))
    .option('--no-stream', 'no audio stream, also where the bot has one');
}

/** What happens after the verdict without a round trip. */
function withPlans(command: Command): Command {
  return command
    .option('--voicemail <sound>', 'a message for a machine, e.g. sound:offer')
    .addOption(
      new Option('--if-no-beep <what>', 'after a greeting without a beep').choices(noBeepChoices),
    )
    .option('--screening <sound>', 'what a call screener hears')
    .option('--bridge <target>', 'whom the person is connected to, e.g. sip:agents@pbx.example')
    .addOption(
      new Option('--bridge-on <when>', 'left out: person where detection runs').choices(
        transferStarts,
      ),
    )
    .addOption(new Option('--bridge-mode <mode>', 'a second leg, or REFER').choices(transferModes))
    .option('--bridge-timeout <ms>', 'how long to wait for an answer')
    .option('--bridge-caller <number>', "caller ID of the second leg; left out: the call's");
}

function addReading(program: Command, calls: Command, createContext: () => CliContext): void {
  ofApp(calls.command('list', { isDefault: true }))
    .description('newest first')
    .addOption(new Option('--status <status>', 'only these').choices(interactionStatuses))
    .option('--limit <number>', 'how many', '50')
    .option('--json', 'one JSON object a line')
    .action(async (options: ListCallsOptions) => {
      await (await callsCommands()).listCalls(createContext(), options);
    });
  ofApp(calls.command('show <callId>'))
    .description('one call with its timeline')
    .option('--json', 'as one JSON object')
    .action(async (callId: string, options: ShowCallOptions) => {
      await (await callsCommands()).showCall(createContext(), callId, options);
    });
  ofApp(program.command('context <callId>'))
    .description('what a bot flow reads of a call, as JSON; the beginning of its id is enough')
    .action(async (callId: string, options: AppOptions) => {
      await (await callsCommands()).showContext(createContext(), callId, options);
    });
}

/** While a call is up. */
function addLive(calls: Command, createContext: () => CliContext): void {
  ofCommand(calls.command('play <callId> <sound>'))
    .description('play sound:<name>, or the WAV file at a URL, to the one who is on the line')
    .option('--loop', 'until it is stopped')
    .action(async (callId: string, sound: string, options: PlayOptions) => {
      await (await liveCommands()).playToCall(createContext(), callId, sound, options);
    });
  ofCommand(calls.command('stream <callId> [url]'))
    .description('have the bot at a ws or wss URL take the audio, in place of the one that has it')
    .option('--none', 'no bot any more; the call goes on')
    .addOption(several('--parameter <name=value>', 'told to the bot'))
    .action(async (callId: string, url: string | undefined, options: StreamOptions) => {
      await (await liveCommands()).streamCall(createContext(), callId, url, options);
    });
  ofCommand(calls.command('stop <callId>'))
    .description('play nothing more of what is queued, and press no more keys')
    .action(async (callId: string, options: LiveOptions) => {
      await (await liveCommands()).stopPlaying(createContext(), callId, options);
    });
  ofCommand(calls.command('dtmf <callId> <digits>'))
    .description('press keys: 0-9 A-D * # and w, which waits for 500 ms')
    .option('--duration <ms>', 'of each key; left out: 100')
    .action(async (callId: string, digits: string, options: KeyOptions) => {
      await (await liveCommands()).pressKeys(createContext(), callId, digits, options);
    });
  addTransfer(calls, createContext);
  ofCommand(calls.command('hangup <callId>'))
    .description('cancel the call or hang up, in every state')
    .action(async (callId: string, options: LiveOptions) => {
      await (await liveCommands()).hangUpCall(createContext(), callId, options);
    });
}

function addTransfer(calls: Command, createContext: () => CliContext): void {
  ofCommand(calls.command('transfer <callId> <target>'))
    .description('connect the person to an agent: a target as of `call`')
    .addOption(
      new Option('--mode <mode>', 'a second leg, or REFER; left out: bridge').choices(
        transferModes,
      ),
    )
    .option('--timeout <ms>', 'how long to wait for an answer')
    .option('--caller <number>', "caller ID of the second leg; left out: the call's")
    .option('--trunk <name>', "trunk of the second leg; left out: the call's for tel:")
    .addOption(several('--header <name: value>', 'header of the INVITE or REFER'))
    .option('--keep-stream', 'the bot goes on hearing the person')
    .addOption(
      new Option('--on-failure <what>', 'if no agent is reached, and no bot has a stream').choices(
        transferFallbacks,
      ),
    )
    .action(async (callId: string, target: string, options: TransferOptions) => {
      await (await liveCommands()).transferCall(createContext(), callId, target, options);
    });
}

function addNotifications(program: Command, createContext: () => CliContext): void {
  const notifications = program.command('notifications').description('what receivers were sent');
  ofApp(notifications.command('list [callId]', { isDefault: true }))
    .description('of a call, with each attempt; without one: dead letters, newest first')
    .option('--failed-since <duration>', 'dead letters of the last e.g. 2h')
    .option('--json', 'one JSON object a line')
    .action(async (callId: string | undefined, options: ListOptions) => {
      await (await notificationsCommands()).listNotifications(createContext(), callId, options);
    });
  ofApp(notifications.command('replay [eventId]'))
    .description('send dead letters again: one, those of a call, or those of a time')
    .option('--call <callId>', 'of this call')
    .option('--failed-since <duration>', 'given up in the last e.g. 2h')
    .action(async (eventId: string | undefined, options: ReplayOptions) => {
      await (await notificationsCommands()).replayNotifications(createContext(), eventId, options);
    });
}

function ofApp(command: Command): Command {
  return command
    .option('--bot <id>', 'only of this bot; left out: of every bot of the app')
    .option('--app <id>', 'app that asks; left out: the dev app');
}

function ofCommand(command: Command): Command {
  return ofApp(command).option('--id <id>', 'names it: done once, however often it is repeated');
}

function several(flags: string, description: string): Option {
  return new Option(flags, `${description}; several times`).argParser(
    (value: string, before: readonly string[] | undefined) => [...(before ?? []), value],
  );
}
