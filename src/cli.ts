#!/usr/bin/env node
// The `offhook` command. It manages and inspects the local gateway, and runs parts of it as
// separate processes.

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
import { addRecordingCommands } from './cli/recordings/recordings.ts';
import { addCampaignCommands } from './cli/rules/campaigns.ts';
import { addRecordCommands } from './cli/rules/records.ts';
import { addRuleCommands } from './cli/rules/rules.ts';
import { addSuppressionCommands } from './cli/rules/suppressions.ts';
import type { ReencryptOptions } from './cli/secrets-command.ts';
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

// We load modules when their command runs, so that no command loads another command's code.
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

/**
 * Returns the networks, besides public addresses, to which a gateway with this configuration may
 * send notifications.
 */
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
  addSecretsCommand(program);
  addEventCommands(program);
  addCallCommands(program, createContext);
  addSoundCommands(program, createContext);
  addRecordingCommands(program, createContext);
  addCampaignCommands(program, createContext);
  addRecordCommands(program, createContext);
  addRuleCommands(program, createContext);
  addSuppressionCommands(program, createContext);
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
    .description('receive notifications, check their signatures and print them')
    .option('--port <number>', 'port to listen on; 0 picks a free one', '4000')
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .option('--secret <whsec>', "webhook secret (default: the dev app's)")
    .option('--json', 'print one JSON object per line, with headers and raw body')
    .action(async (options: ListenOptions) => {
      const { listen } = await import('./cli/listen-command.ts');
      await listen(createContext(), options);
    });

  program
    .command('bot')
    .description('run a sample bot for audio streams; it repeats what it hears, then hangs up')
    .option('--port <number>', 'port to listen on; 0 picks a free one', '4001')
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .option('--secret <secret>', "stream secret that gateways sign with (default: the dev app's)")
    .option('--json', 'print one JSON object per line')
    .action(async (options: ListenOptions) => {
      const { runBot } = await import('./cli/bot/bot-command.ts');
      await runBot(createContext(), options);
    });

  program
    .command('sip-engine')
    .description('run the embedded SIP engine as a separate process; print its URLs as JSON')
    .option('--sip-host <address>', 'SIP address (default: SIP_HOST)')
    .option('--sip-port <port>', 'SIP port, UDP and TCP (default: SIP_PORT)')
    .option('--control-host <address>', 'address to which gateways connect', '127.0.0.1')
    .option('--control-port <port>', 'port to which gateways connect; 0 picks a free one', '9022')
    .option('--secret <secret>', 'secret that gateways must present (default: a random one)')
    .action(async (options: SipEngineOptions) => {
      const { runSipEngine } = await import('./cli/sip-engine-command.ts');
      await runSipEngine(createContext(), options);
    });
}

function addConsoleCommand(program: Command): void {
  program
    .command('console')
    .description('print a link that signs a browser in to the console')
    .option(
      '--app <id>',
      'app whose calls the console shows (default: the dev app of this DATA_DIR)',
    )
    .action(async (options: { readonly app?: string }) => {
      await printConsoleLink(createContext(), options);
    });
}

function addAppCommands(program: Command): void {
  program
    .command('token')
    .description('print a JWT for the `auth` header')
    .option('--app <id>', 'app that the token is for (default: the dev app of this DATA_DIR)')
    .option(
      '--ttl <duration>',
      'lifetime, e.g. 90s, 15m or 1h; the app may have a lower limit',
      '1h',
    )
    .action(async (options: { app?: string; ttl: string }) => {
      await (await appCommands()).printToken(createContext(), options);
    });

  const apps = program.command('apps').description('manage the apps that may call the API');
  addCreation(apps);
  apps
    .command('list')
    .description('list all apps, oldest first')
    .option('--json', 'print one JSON object per line')
    .action(async (options: { json?: boolean }) => {
      await (await appCommands()).listApps(createContext(), options);
    });
  apps
    .command('rotate <appId>')
    .description(
      'create a new credential and print it once; the old one stays valid for the grace period',
    )
    .addArgument(new Argument('<what>', 'credential to replace').choices(rotatable))
    .option(
      '--grace <duration>',
      'how long the old credential stays valid, e.g. 0s, 24h or 7d',
      '24h',
    )
    .option('--public-key <file>', 'new public key, for an app that signs with a private key')
    .option('--jwks <file>', 'JWKS document with several public keys, instead of --public-key')
    .option(
      '--force',
      'rotate even within the grace period of the previous rotation; ends the oldest credential now',
    )
    .action(async (appId: string, what: RotatableCredential, options: RotateOptions) => {
      await (await appCommands()).rotateApp(createContext(), appId, what, options);
    });
  addLimits(apps);
  apps
    .command('revoke <appId>')
    .description('refuse an app permanently')
    .action(async (appId: string) => {
      await (await appCommands()).revokeApp(createContext(), appId);
    });
}

function addCreation(apps: Command): void {
  apps
    .command('create')
    .description('create an app and print its credentials once')
    .requiredOption('--name <name>', 'name that people see')
    .requiredOption('--account <id>', 'account whose calls the app may see')
    .option('--bots <ids>', 'bot ids separated by commas, or * for all bots', '*')
    .option('--scopes <names>', 'scopes separated by commas (default: Dialout)')
    .addOption(
      new Option('--jwt-algorithm <name>', 'algorithm that signs its tokens')
        .choices(jwtAlgorithms)
        .default('HS256'),
    )
    .option('--public-key <file>', 'public key for RS256, ES256 or EdDSA, as PEM or JWK')
    .option('--jwks <file>', 'JWKS document with several public keys, instead of --public-key')
    .option(
      '--default-country <code>',
      'read numbers without + as national numbers of this country, e.g. US',
    )
    .addOption(bareNumbers(['international']))
    .action(async (options: CreateAppOptions) => {
      await (await appCommands()).createApp(createContext(), options);
    });
}

function addLimits(apps: Command): void {
  apps
    .command('limit <appId>')
    .description('limit what an app may dial, and how much; omitted options change nothing')
    .option('--prefixes <list>', 'prefixes that the app may dial, e.g. +1,+49; none allows all')
    .option(
      '--deny-prefixes <list>',
      'prefixes that the app must not dial, e.g. +1900; none removes the rule',
    )
    .option(
      '--calls-at-once <number>',
      'calls that may be queued or up at the same time; none removes the limit',
    )
    .option('--calls-a-day <number>', 'calls accepted per UTC day; none removes the limit')
    .option(
      '--token-ttl <duration>',
      'longest lifetime of its tokens, e.g. 24h; none removes the limit',
    )
    .option(
      '--default-country <code>',
      'read numbers without + as national numbers of this country, e.g. US; none removes it',
    )
    .addOption(bareNumbers(['international', 'none']))
    .action(async (appId: string, options: LimitOptions) => {
      await (await appCommands()).limitApp(createContext(), appId, options);
    });
}

function bareNumbers(ways: readonly string[]): Option {
  return new Option('--bare-numbers <how>', 'how to read every number without +').choices(ways);
}

function addTableCommands(program: Command): void {
  const tables = program
    .command('tables')
    .description('manage data tables, to which apps add rows');
  tables
    .command('create <file>')
    .description(
      'define a table: {name, columns: [{name, type, required}], writers: [app id or *]}',
    )
    .option('--account <id>', 'account that owns the table (default on the embedded database: dev)')
    .option('--replace', 'change the definition of an existing table; its rows stay')
    .action(async (file: string, options: CreateTableOptions) => {
      await (await tableCommands()).createTable(createContext(), file, options);
    });
  tables
    .command('list')
    .description('list all tables by account and name, one JSON object per line')
    .action(async () => {
      await (await tableCommands()).listTables(createContext());
    });
}

function addNodeCommand(program: Command): void {
  program
    .command('nodes')
    .description('list the gateway processes that share the database: state, calls, lease, version')
    .option('--json', 'print one JSON object per line')
    .action(async (options: { json?: boolean }) => {
      const { listNodes } = await import('./cli/nodes-command.ts');
      await listNodes(createContext(), options);
    });
}

function addSecretsCommand(program: Command): void {
  program
    .command('secrets')
    .description('manage the encryption of stored secrets')
    .command('reencrypt')
    .description('re-encrypt all stored secrets with SECRETS_KEY; needs SECRETS_KEY_PREVIOUS too')
    .option('--dry-run', 'only count the secrets that are not sealed with SECRETS_KEY')
    .option('--force', 'do not wait for gateways that do not have SECRETS_KEY yet')
    .action(async (options: ReencryptOptions) => {
      const { reencryptSecrets } = await import('./cli/secrets-command.ts');
      await reencryptSecrets(createContext(), options);
    });
}

function addEventCommands(program: Command): void {
  const events = program.command('events').description('check the events on NATS');
  events
    .command('repair')
    .description('publish events that the database has and NATS has lost, under the same ids')
    .option('--since <duration>', 'how far back to compare, e.g. 30m, 2h or 7d', '2h')
    .option('--dry-run', 'only count them')
    .action(async (options: { since: string; dryRun?: boolean }) => {
      const { repairEvents } = await import('./cli/events-command.ts');
      await repairEvents(createContext(), options);
    });
}

function addBotCommands(program: Command): void {
  const bots = program
    .command('bots')
    .description('manage bots: their accounts, aliases, logos, audio streams and recordings');
  bots
    .command('add <botId>')
    .description('register a bot, or change its alias, logo, audio stream or recording')
    .requiredOption('--account <id>', 'account that owns the bot; it cannot be changed later')
    .option('--stream <id>', 'stream identifier: an alias of the bot in requests')
    .option('--icon <url>', 'URL of its logo')
    .option('--stream-url <url>', 'ws or wss URL that receives the audio of its calls')
    .option('--no-stream-url', 'stop sending audio to the bot')
    .addOption(
      new Option('--stream-connect <when>', 'when the audio stream starts').choices(streamConnects),
    )
    .option(
      '--recording <json>',
      'how its calls are recorded by default, as in a request; true for the defaults',
    )
    .option('--no-recording', 'stop recording its calls by default')
    .action(async (botId: string, options: AddBotOptions) => {
      await (await botCommands()).addBot(createContext(), botId, options);
    });
  bots
    .command('list')
    .description('list all bots, oldest first, one JSON object per line')
    .action(async () => {
      await (await botCommands()).listBots(createContext());
    });
}

function addDoctorCommand(program: Command): void {
  program
    .command('doctor')
    .description('check everything that a gateway needs here; exit with 1 if a check fails')
    .option('--notify <url>', 'also check that this receiver of notifications is reachable')
    .option('--json', 'print one JSON object per line')
    .action(async (options: DoctorOptions) => {
      const context = createContext();
      const { examine } = await import('./cli/doctor-command.ts');
      await examine(context, openNetworks(context.config), options);
    });
}

function addWebhooksCommand(program: Command): void {
  program
    .command('webhooks')
    .description('test a receiver of notifications')
    .command('test <url>')
    .description(
      'test a receiver: send every status, duplicates, a swapped order and wrong signatures; print a score and what to fix',
    )
    .option('--secret <whsec>', "webhook secret of the receiver (default: the dev app's)")
    .option('--min-score <number>', 'exit with 1 if the score is lower', '100')
    .option('--strict', 'count a check as failed if the responses do not reveal its result')
    .option('--json', 'print one JSON object per line')
    .action(async (url: string, options: WebhooksTestOptions) => {
      const context = createContext();
      const { testReceiver } = await import('./cli/webhooks/webhooks-command.ts');
      await testReceiver(context, openNetworks(context.config), url, options);
    });
}

createProgram()
  .parseAsync()
  .then(
    // Exit right away, because keep-alive connections from the last request would delay a normal
    // exit.
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

/**
 * Returns the cause on a separate line. We omit ENOENT because the message already names the file.
 */
function causeOf(cause: unknown): string {
  const isKnown =
    !(cause instanceof Error) ||
    ('code' in cause && (cause as NodeJS.ErrnoException).code === 'ENOENT');
  return isKnown ? '' : `\n  ${errorForPeople(cause)}`;
}
