#!/usr/bin/env node
// The `offhook` command: what can be asked of a gateway that runs here, and parts of it as processes of their own.

import { Argument, Command, Option } from 'commander';
import { beyondLaptop, networksOpenTo } from './app/networks.ts';
import { readRuntime } from './app/runtime-file.ts';
import { streamConnects } from './calls/stream/stream.ts';
import { addAmdCommand } from './cli/amd/amd.ts';
import type { CreateAppOptions, LimitOptions, RotateOptions } from './cli/apps-commands.ts';
import type { AddBotOptions } from './cli/bots-commands.ts';
import { addCallCommands } from './cli/calls/calls.ts';
import type { CliContext } from './cli/cli-context.ts';
import { CliError } from './cli/cli-error.ts';
import { printConsoleLink } from './cli/console-command.ts';
import type { DoctorOptions } from './cli/doctor-command.ts';
import type { ListenOptions } from './cli/listen-command.ts';
import type { SipEngineOptions } from './cli/sip-engine-command.ts';
import { addSoundCommands } from './cli/sounds.ts';
import type { CreateTableOptions } from './cli/tables-commands.ts';
import type { WebhooksTestOptions } from './cli/webhooks/webhooks-command.ts';
import { type Config, loadConfig } from './config.ts';
import { errorForPeople } from './lib/error-for-log.ts';
import { trunksPath } from './sip/trunks/trunks-path.ts';
import { type RotatableCredential, rotatable } from './store/apps/app-credentials.ts';
import { jwtAlgorithms } from './store/apps/app-directory.ts';
import { version } from './version.ts';

// Loaded when they are asked for, so that each command starts without the others.
const appCommands = () => import('./cli/apps-commands.ts');
const botCommands = () => import('./cli/bots-commands.ts');
const tableCommands = () => import('./cli/tables-commands.ts');

function createContext(): CliContext {
  const config = loadConfig();
  const interrupted = new AbortController();
  const onSignal = (): void => {
    if (interrupted.signal.aborted) process.exit(130);
    interrupted.abort();
  };
  process.on('SIGINT', onSignal);
  process.on('SIGTERM', onSignal);
  return {
    config,
    gateway: () => readRuntime(config),
    print: (line) => {
      process.stdout.write(`${line}\n`);
    },
    note: (line) => {
      process.stderr.write(`${line}\n`);
    },
    interrupted: interrupted.signal,
  };
}

/** As a gateway of this configuration has them. */
function openNetworks(config: Config): readonly string[] {
  const beyond = beyondLaptop(config, trunksPath(config) !== undefined);
  return networksOpenTo(config.notifier.allowedNetworks, beyond);
}

function createProgram(): Command {
  const program = new Command('offhook')
    .description('Places outbound phone calls and tells you who picked up.')
    .version(version);

  addAppCommands(program);
  addBotCommands(program);
  addTableCommands(program);
  addNodeCommand(program);
  addCallCommands(program, createContext);
  addSoundCommands(program, createContext);
  addConsoleCommand(program);
  addAmdCommand(program, createContext);
  addProcessCommands(program);
  addDoctorCommand(program);
  addWebhooksCommand(program);
  return program;
}

function addProcessCommands(program: Command): void {
  program
    .command('listen')
    .description('receive notifications, check their signatures, print them')
    .option('--port <number>', 'port; 0 takes a free one', '4000')
    .option('--host <address>', 'address', '127.0.0.1')
    .option('--secret <whsec>', "webhook secret; left out: the dev app's")
    .option('--json', 'one JSON object a line, with headers and raw body')
    .action(async (options: ListenOptions) => {
      const { listen } = await import('./cli/listen-command.ts');
      await listen(createContext(), options);
    });

  program
    .command('bot')
    .description('run a sample bot for audio streams: it repeats what it hears, and hangs up')
    .option('--port <number>', 'port; 0 takes a free one', '4001')
    .option('--host <address>', 'address', '127.0.0.1')
    .option('--secret <secret>', "stream secret that signs; left out: the dev app's")
    .option('--json', 'one JSON object a line')
    .action(async (options: ListenOptions) => {
      const { runBot } = await import('./cli/bot/bot-command.ts');
      await runBot(createContext(), options);
    });

  program
    .command('sip-engine')
    .description('run the embedded SIP engine as a process of its own; prints its URLs as JSON')
    .option('--sip-host <address>', 'address of SIP; left out: SIP_HOST')
    .option('--sip-port <port>', 'port of SIP, UDP and TCP; left out: SIP_PORT')
    .option('--control-host <address>', 'address for gateways', '127.0.0.1')
    .option('--control-port <port>', 'port for gateways; 0 takes a free one', '9022')
    .option('--secret <secret>', 'what gateways must know; left out: a random one')
    .action(async (options: SipEngineOptions) => {
      const { runSipEngine } = await import('./cli/sip-engine-command.ts');
      await runSipEngine(createContext(), options);
    });
}

function addConsoleCommand(program: Command): void {
  program
    .command('console')
    .description('print a link that signs a browser in at the console')
    .option('--app <id>', 'app whose calls it shows; left out: the dev app of this DATA_DIR')
    .action(async (options: { readonly app?: string }) => {
      await printConsoleLink(createContext(), options);
    });
}

function addAppCommands(program: Command): void {
  program
    .command('token')
    .description('print a JWT for the header `auth`')
    .option('--app <id>', 'app; left out: the dev app of this DATA_DIR')
    .option(
      '--ttl <duration>',
      'how long it is valid: 90s, 15m, 1h; at most what the app may have',
      '1h',
    )
    .action(async (options: { app?: string; ttl: string }) => {
      await (await appCommands()).printToken(createContext(), options);
    });

  const apps = program.command('apps').description('who may call the API');
  addCreation(apps);
  apps
    .command('list')
    .description('every app, oldest first')
    .option('--json', 'one JSON object a line')
    .action(async (options: { json?: boolean }) => {
      await (await appCommands()).listApps(createContext(), options);
    });
  apps
    .command('rotate <appId>')
    .description('make a new credential and print it, once; the former one lives on for a while')
    .addArgument(new Argument('<what>', 'which one').choices(rotatable))
    .option('--grace <duration>', 'how long the former one is taken: 0s, 24h, 7d', '24h')
    .option('--public-key <file>', 'the new one, where the app signs with a private key')
    .option('--jwks <file>', 'the same as a JWKS document of several keys')
    .option('--force', 'also within the grace time of the rotation before: ends the oldest one now')
    .action(async (appId: string, what: RotatableCredential, options: RotateOptions) => {
      await (await appCommands()).rotateApp(createContext(), appId, what, options);
    });
  addLimits(apps);
  apps
    .command('revoke <appId>')
    .description('refuse an app from now on, for good')
    .action(async (appId: string) => {
      await (await appCommands()).revokeApp(createContext(), appId);
    });
}

function addCreation(apps: Command): void {
  apps
    .command('create')
    .description('make an app and print its credentials, once')
    .requiredOption('--name <name>', 'for people')
    .requiredOption('--account <id>', 'account whose calls it may see')
    .option('--bots <ids>', 'bot ids separated by commas, or *', '*')
    .option('--scopes <names>', 'separated by commas; left out: Dialout')
    .addOption(
      new Option('--jwt-algorithm <name>', 'the one that its tokens are signed by')
        .choices(jwtAlgorithms)
        .default('HS256'),
    )
    .option('--public-key <file>', 'for RS256, ES256, EdDSA: PEM, or a JWK')
    .option('--jwks <file>', 'the same as a JWKS document of several keys')
    .option(
      '--default-country <code>',
      'numbers without + are national ones of this country, e.g. US',
    )
    .addOption(bareNumbers(['international']))
    .action(async (options: CreateAppOptions) => {
      await (await appCommands()).createApp(createContext(), options);
    });
}

function addLimits(apps: Command): void {
  apps
    .command('limit <appId>')
    .description('what an app may dial, and how much; an option that is left out changes nothing')
    .option('--prefixes <list>', 'numbers it may dial, e.g. +1,+49; none: any')
    .option('--deny-prefixes <list>', 'numbers it may not dial all the same, e.g. +1900; none')
    .option('--calls-at-once <number>', 'accepted and not ended; none: no limit')
    .option('--calls-a-day <number>', 'accepted between midnights in UTC; none: no limit')
    .option('--token-ttl <duration>', 'how long its tokens may live, e.g. 24h; none: as they say')
    .option(
      '--default-country <code>',
      'numbers without + are national ones of it, e.g. US; or none',
    )
    .addOption(bareNumbers(['international', 'none']))
    .action(async (appId: string, options: LimitOptions) => {
      await (await appCommands()).limitApp(createContext(), appId, options);
    });
}

function bareNumbers(ways: readonly string[]): Option {
  return new Option('--bare-numbers <how>', 'how every number without + is read').choices(ways);
}

function addTableCommands(program: Command): void {
  const tables = program.command('tables').description('data tables, that apps add rows to');
  tables
    .command('create <file>')
    .description(
      'define a table: {name, columns: [{name, type, required}], writers: [app id or *]}',
    )
    .option('--account <id>', 'account that it belongs to; left out: dev, on the embedded database')
    .option('--replace', 'change the definition of a table that there is; its rows stay')
    .action(async (file: string, options: CreateTableOptions) => {
      await (await tableCommands()).createTable(createContext(), file, options);
    });
  tables
    .command('list')
    .description('one JSON object a line, by account and name')
    .action(async () => {
      await (await tableCommands()).listTables(createContext());
    });
}

function addNodeCommand(program: Command): void {
  program
    .command('nodes')
    .description('gateway processes that share the database: state, calls, lease, version')
    .option('--json', 'one JSON object a line')
    .action(async (options: { json?: boolean }) => {
      const { listNodes } = await import('./cli/nodes-command.ts');
      await listNodes(createContext(), options);
    });
}

function addBotCommands(program: Command): void {
  const bots = program.command('bots').description('whose bots are, and their other names');
  bots
    .command('add <botId>')
    .description('register a bot, or change its alias, its logo or its audio stream')
    .requiredOption('--account <id>', 'account that it belongs to, for good')
    .option('--stream <id>', 'stream identifier: its other name in requests')
    .option('--icon <url>', 'its logo')
    .option('--stream-url <url>', 'ws or wss URL at which it takes the audio of its calls')
    .option('--no-stream-url', 'it takes no audio any more')
    .addOption(
      new Option('--stream-connect <when>', 'when it gets the audio').choices(streamConnects),
    )
    .action(async (botId: string, options: AddBotOptions) => {
      await (await botCommands()).addBot(createContext(), botId, options);
    });
  bots
    .command('list')
    .description('one JSON object a line, oldest first')
    .action(async () => {
      await (await botCommands()).listBots(createContext());
    });
}

function addDoctorCommand(program: Command): void {
  program
    .command('doctor')
    .description('check what a gateway needs here; exits with 1 when something is missing')
    .option('--notify <url>', 'a receiver of notifications, to see whether it can be reached')
    .option('--json', 'one JSON object a line')
    .action(async (options: DoctorOptions) => {
      const context = createContext();
      const { examine } = await import('./cli/doctor-command.ts');
      await examine(context, openNetworks(context.config), options);
    });
}

function addWebhooksCommand(program: Command): void {
  program
    .command('webhooks')
    .description('for those who build a receiver of notifications')
    .command('test <url>')
    .description(
      'send every status, repetitions, a swapped order and wrong signatures; say what to mend; score it',
    )
    .option('--secret <whsec>', "webhook secret of the receiver; left out: the dev app's")
    .option('--min-score <number>', 'exit with 1 below it', '100')
    .option('--strict', 'what its answers do not tell counts as failed')
    .option('--json', 'one JSON object a line')
    .action(async (url: string, options: WebhooksTestOptions) => {
      const context = createContext();
      const { testReceiver } = await import('./cli/webhooks/webhooks-command.ts');
      await testReceiver(context, openNetworks(context.config), url, options);
    });
}

createProgram()
  .parseAsync()
  .then(
    // Keep-alive connections of the last request must not keep the command waiting.
    () => process.exit(0),
    (error: unknown) => {
      const text =
        error instanceof CliError
          ? `${error.message}${causeOf(error.cause)}`
          : errorForPeople(error);
      process.stderr.write(`offhook: ${text}\n`);
      process.exit(1);
    },
  );

/** A file that is not there is what the message has just said. */
function causeOf(cause: unknown): string {
  const isKnown =
    !(cause instanceof Error) ||
    ('code' in cause && (cause as NodeJS.ErrnoException).code === 'ENOENT');
  return isKnown ? '' : `\n  ${errorForPeople(cause)}`;
}
