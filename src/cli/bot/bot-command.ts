// offhook bot: the sample bot, for trying audio streams out.

import { noteDevBotCredentials } from '../bot-credentials.ts';
import { type CliContext, readDevApp } from '../cli-context.ts';
import { CliError } from '../cli-error.ts';
import { whenInterrupted } from '../listen-command.ts';
import { describeBotEvent } from './bot-events.ts';
import { startSampleBot } from './sample-bot.ts';

export type BotOptions = {
  readonly port: string;
  readonly host: string;
  readonly secret?: string;
  readonly json?: boolean;
};

export async function runBot(context: CliContext, options: BotOptions): Promise<void> {
  const port = Number(options.port);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    throw new CliError('--port must be 0 to 65535');
  }
  const streamSecret = options.secret ?? (await devStreamSecret(context));
  await using bot = await startSampleBot({
    host: options.host,
    port,
    streamSecret,
    onEvent: (event) =>
      context.print(
        options.json === true
          ? JSON.stringify(event)
          : `${new Date().toISOString().slice(11, 23)}  ${describeBotEvent(event)}`,
      ),
  }).catch((error: unknown) => {
    throw new CliError(`Port ${port} of ${options.host} cannot be listened on.`, { cause: error });
  });
  if (options.json === true) context.print(JSON.stringify({ type: 'listening', url: bot.url }));
  const unsigned =
    streamSecret === undefined ? ' It talks to every client that connects: no --secret.' : '';
  context.note(`the bot is on ${bot.url}; Ctrl-C ends.${unsigned}`);
  await noteDevBotCredentials(context);
  await whenInterrupted(context.interrupted);
}

/** Undefined where no dev app is: with a database of its own, or before the first start. */
async function devStreamSecret(context: CliContext): Promise<string | undefined> {
  return await readDevApp(context).then(
    (app) => app.streamSecret,
    () => undefined,
  );
}
