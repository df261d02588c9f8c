// Declares the `offhook call`, `calls`, `context` and `notifications` commands and their options.

import { Argument, type Command, Option } from 'commander';
import { callOutcomes, callStates, interactionStatuses } from '../../calls/contract/call-words.ts';
import { amdEventNames } from '../../calls/detection/amd-event.ts';
import { detectionPaces } from '../../calls/detection/detection-members.ts';
import { noBeepChoices } from '../../calls/plans/plans.ts';
import { type RecordAction, recordActions } from '../../calls/recording/recording-contract.ts';
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
import type { SummaryOptions } from './summary-command.ts';

/** The default bot of `offhook call`. The dev app may use every bot. */
export const defaultBot = 'dev-bot';

// We don't load a module until its command runs, so no command loads another command's code.
const callsCommands = () => import('./calls-command.ts');
const liveCommands = () => import('./live-commands.ts');
const notificationsCommands = () => import('../notifications-command.ts');

export function addCallCommands(program: Command, createContext: () => CliContext): void {
  addPlacing(program, createContext);
  const calls = program
    .command('calls')
    .description(
      'list and control calls of all bots of the app; the first 4 characters of an id are enough',
    );
  addReading(program, calls, createContext);
  addLive(calls, createContext);
  addNotifications(program, createContext);
}

function addPlacing(program: Command, createContext: () => CliContext): void {
  const call = program
    .command('call <target>')
    .description('place a call to tel:+15551234567, sip:user@host, or a sandbox name (person)')
    .option(
      '--notify <url>',
      'URL for notifications (default with --follow: this command receives them, dev app only)',
    )
    .option(
      '--notify-events <list>',
      'events to notify in addition to the four statuses: ringing,dtmf,transfer-* or *',
    )
    .addOption(repeatable('--header <name: value>', 'header to send with notifications'))
    .addOption(
      new Option('--amd <mode>', 'machine detection')
        .choices(['detect', 'disconnect', 'disabled'])
        .default('disabled'),
    )
    .addOption(repeatable('--timer <name=ms>', 'detection timer, e.g. noSpeechTimeoutMs=3000'))
    .addOption(
      new Option('--detection <pace>', 'how soon somebody may be called a person').choices([
        ...detectionPaces,
      ]),
    )
    .option('--threshold-word-count <number>', 'strict rule: this many words are a machine')
    .option('--metadata <json>', 'JSON object for the bot, stored in the context of the call')
    .option('--campaign <name>', 'campaign that the call belongs to')
    .option('--rules <name>', 'rule set of the call (default: default)')
    .option('--time-zone <zone>', 'IANA time zone of the person')
    .option('--consent <basis>', 'written, verbal, existing-relationship or other')
    .option('--consent-at <time>', 'when the consent was given, ISO 8601 (default: now)');
  withPlans(withStream(call))
    .option('--bot <id>', 'bot that handles the call', defaultBot)
    .option('--app <id>', 'app to act as (default: the dev app)')
    .option('--caller <number>', 'user part of the caller ID', '+12025550199')
    .option('--caller-name <name>', 'display name of the caller')
    .addOption(
      repeatable('--sip-header <name: value>', 'header of the INVITE, if the trunk passes it'),
    )
    .option('--identity <value>', 'Identity header of the INVITE (RFC 8224)')
    .option('--trunk <name>', 'trunk to dial over (default: the default trunk)')
    .option('--timeout <ms>', 'how long to ring')
    .option('--max-duration <ms>', 'longest duration after the answer, in ms or e.g. 90s, 10m')
    .option('--follow', 'print events until the call ends; Ctrl-C hangs up')
    .action(async (target: string, options: CallOptions) => {
      const { placeCall } = await import('./call-command.ts');
      await placeCall(createContext(), target, options);
    });
}

function withStream(command: Command): Command {
  return command
    .option(
      '--stream-url <url>',
      "ws or wss URL that receives the call's audio (default: the URL of the bot)",
    )
    .addOption(
      new Option('--stream-connect <when>', 'when the audio stream starts').choices(streamConnects),
    )
    .addOption(repeatable('--stream-parameter <name=value>', 'parameter to pass to the bot'))
    .option('--no-stream', 'open no audio stream, even if the bot has one');
}

/**
 * Adds the options for plans, which define what the call does after the verdict without further
 * requests.
 */
function withPlans(command: Command): Command {
  return command
    .option('--voicemail <sound>', 'message to leave on a machine, e.g. sound:offer')
    .addOption(
      new Option('--if-no-beep <what>', 'what to do after a greeting without a beep').choices(
        noBeepChoices,
      ),
    )
    .option('--screening <sound>', 'sound to play to a call screener')
    .option('--recording <json>', 'how the call is recorded, as in a request, or true')
    .option('--no-recording', 'never record the call, even if the bot says so')
    .option('--opt-out-key <key>', 'key with which the person suppresses the number, e.g. 9')
    .option('--opt-out-sound <sound>', 'sound to play when the person has opted out')
    .option('--bridge <target>', 'agent to connect the person to, e.g. sip:agents@pbx.example')
    .addOption(
      new Option(
        '--bridge-on <when>',
        'when to connect them (default with detection: person)',
      ).choices(transferStarts),
    )
    .addOption(
      new Option('--bridge-mode <mode>', 'use a second leg, or REFER').choices(transferModes),
    )
    .option('--bridge-timeout <ms>', 'how long to wait for an answer')
    .option('--bridge-caller <number>', "caller ID of the second leg (default: the call's)")
    .option('--bridge-caller-name <name>', 'display name of the caller on the second leg');
}

function addReading(program: Command, calls: Command, createContext: () => CliContext): void {
  const list = withAppOptions(calls.command('list', { isDefault: true }))
    .description('list calls, newest first')
    .addOption(
      new Option('--status <status>', 'only calls with this status').choices(interactionStatuses),
    )
    .addOption(new Option('--state <state>', 'only calls in this state').choices(callStates))
    .addOption(new Option('--outcome <outcome>', 'only calls that ended so').choices(callOutcomes))
    .addOption(
      new Option('--verdict <verdict>', 'only calls with this verdict').choices(amdEventNames),
    )
    .option('--number <number>', 'only calls to this number, e.g. +12025550110')
    .option('--campaign <name>', 'only calls of this campaign')
    .addOption(
      repeatable('--metadata <name=value>', 'only calls with this member of the metadata'),
    );
  withPeriod(list)
    .option('--limit <number>', 'how many calls to list', '50')
    .option('--json', 'print one JSON object per line')
    .option('--csv', 'print CSV')
    .action(async (options: ListCallsOptions) => {
      await (await callsCommands()).listCalls(createContext(), options);
    });
  withPeriod(
    withAppOptions(calls.command('summary')).description(
      'sum up the calls of a period (default: today) by bot, trunk and day',
    ),
  )
    .option('--json', 'print one JSON object')
    .action(async (options: SummaryOptions) => {
      const { summarizeCalls } = await import('./summary-command.ts');
      await summarizeCalls(createContext(), options);
    });
  withPeriod(
    withAppOptions(calls.command('callers')).description(
      'count the calls of a period by caller ID, those that carriers block most first (default: today)',
    ),
  )
    .option('--json', 'print one JSON object')
    .action(async (options: SummaryOptions) => {
      const { summarizeCallers } = await import('./summary-command.ts');
      await summarizeCallers(createContext(), options);
    });
  withAppOptions(calls.command('show <callId>'))
    .description('show one call with its timeline')
    .option('--json', 'print one JSON object')
    .action(async (callId: string, options: ShowCallOptions) => {
      await (await callsCommands()).showCall(createContext(), callId, options);
    });
  withAppOptions(program.command('context <callId>'))
    .description('print the context of a call as JSON, as its bot flow reads it')
    .action(async (callId: string, options: AppOptions) => {
      await (await callsCommands()).showContext(createContext(), callId, options);
    });
}

function withPeriod(command: Command): Command {
  return command
    .option('--day <day>', 'only calls accepted on this day, e.g. 2026-11-24')
    .option('--time-zone <name>', 'time zone of the day, e.g. Europe/Berlin (default: UTC)')
    .option('--from <time>', 'only calls accepted at this time or later, e.g. 2026-11-24T08:00:00Z')
    .option('--to <time>', 'only calls accepted before this time');
}

/** Adds the commands for a call that is up. */
function addLive(calls: Command, createContext: () => CliContext): void {
  withCommandOptions(calls.command('play <callId> <sound>'))
    .description('play sound:<name>, or the WAV file at a URL, to the person on the line')
    .option('--loop', 'repeat until stopped')
    .action(async (callId: string, sound: string, options: PlayOptions) => {
      await (await liveCommands()).playToCall(createContext(), callId, sound, options);
    });
  withCommandOptions(calls.command('stream <callId> [url]'))
    .description('stream the audio to the bot at a ws or wss URL, instead of the current bot')
    .option('--none', 'disconnect the bot; the call continues')
    .addOption(repeatable('--parameter <name=value>', 'parameter to pass to the bot'))
    .action(async (callId: string, url: string | undefined, options: StreamOptions) => {
      await (await liveCommands()).streamCall(createContext(), callId, url, options);
    });
  withCommandOptions(calls.command('stop <callId>'))
    .description('stop all queued sounds and keys')
    .action(async (callId: string, options: LiveOptions) => {
      await (await liveCommands()).stopPlaying(createContext(), callId, options);
    });
  withCommandOptions(calls.command('dtmf <callId> <digits>'))
    .description('press keys: 0-9 A-D * # and w, which pauses for 500 ms')
    .option('--duration <ms>', 'duration of each key (default: 100)')
    .action(async (callId: string, digits: string, options: KeyOptions) => {
      await (await liveCommands()).pressKeys(createContext(), callId, digits, options);
    });
  addTransfer(calls, createContext);
  withCommandOptions(calls.command('record <callId>'))
    .description('start, pause, resume or stop the recording of the call')
    .addArgument(new Argument('<action>').choices(recordActions))
    .action(async (callId: string, action: RecordAction, options: LiveOptions) => {
      await (await liveCommands()).recordCall(createContext(), callId, action, options);
    });
  withCommandOptions(calls.command('opt-out <callId>'))
    .description('never call this person again; the call ends, unless an agent is connected')
    .action(async (callId: string, options: LiveOptions) => {
      await (await liveCommands()).optOut(createContext(), callId, options);
    });
  withCommandOptions(calls.command('hangup <callId>'))
    .description('cancel or hang up the call, in any state')
    .action(async (callId: string, options: LiveOptions) => {
      await (await liveCommands()).hangUpCall(createContext(), callId, options);
    });
}

function addTransfer(calls: Command, createContext: () => CliContext): void {
  withCommandOptions(calls.command('transfer <callId> <target>'))
    .description('connect the person to an agent; targets are as for `offhook call`')
    .addOption(
      new Option('--mode <mode>', 'use a second leg, or REFER (default: bridge)').choices(
        transferModes,
      ),
    )
    .option('--timeout <ms>', 'how long to wait for an answer')
    .option('--caller <number>', "caller ID of the second leg (default: the call's)")
    .option('--caller-name <name>', 'display name of the caller on the second leg')
    .option('--trunk <name>', "trunk of the second leg (default for tel: the call's trunk)")
    .addOption(repeatable('--header <name: value>', 'header of the INVITE or REFER'))
    .option('--keep-stream', 'let the bot keep hearing the person')
    .addOption(
      new Option(
        '--on-failure <what>',
        'what to do if no agent is reached and no bot has a stream',
      ).choices(transferFallbacks),
    )
    .action(async (callId: string, target: string, options: TransferOptions) => {
      await (await liveCommands()).transferCall(createContext(), callId, target, options);
    });
}

function addNotifications(program: Command, createContext: () => CliContext): void {
  const notifications = program
    .command('notifications')
    .description('list notifications, and send dead letters again');
  withAppOptions(notifications.command('list [callId]', { isDefault: true }))
    .description(
      'list the notifications of a call with each attempt; without a call, list dead letters, newest first',
    )
    .option('--failed-since <duration>', 'list dead letters of at most this age, e.g. 2h')
    .option('--json', 'print one JSON object per line')
    .action(async (callId: string | undefined, options: ListOptions) => {
      await (await notificationsCommands()).listNotifications(createContext(), callId, options);
    });
  withAppOptions(notifications.command('replay [eventId]'))
    .description('send dead letters again: one, all of a call, or all of a period')
    .option('--call <callId>', 'replay the dead letters of this call')
    .option('--failed-since <duration>', 'replay the dead letters of at most this age, e.g. 2h')
    .action(async (eventId: string | undefined, options: ReplayOptions) => {
      await (await notificationsCommands()).replayNotifications(createContext(), eventId, options);
    });
}

function withAppOptions(command: Command): Command {
  return command
    .option('--bot <id>', 'limit the command to this bot (default: every bot of the app)')
    .option('--app <id>', 'app to act as (default: the dev app)');
}

function withCommandOptions(command: Command): Command {
  return withAppOptions(command).option(
    '--id <id>',
    'command id; the gateway runs a repeated command only once',
  );
}

function repeatable(flags: string, description: string): Option {
  return new Option(flags, `${description}; may be repeated`).argParser(
    (value: string, before: readonly string[] | undefined) => [...(before ?? []), value],
  );
}
