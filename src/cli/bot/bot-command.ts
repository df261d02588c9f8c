// Implements `offhook bot`, which runs the sample bot to try out audio streams.

import { noteDevBotCredentials } from '../bot-credentials.ts';
import { type CliContext, readDevApp } from '../cli-context.ts';
import { cannotListen, type ListenOptions, portOf, whenInterrupted } from '../listen-command.ts';
import { describeBotEvent } from './bot-events.ts';
import { startSampleBot } from './sample-bot.ts';

export async function runBot(context: CliContext, options: ListenOptions): Promise<void> {
  const port = portOf(options);
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
  }).catch(cannotListen(options));
  if (options.json === true) context.print(JSON.stringify({ type: 'listening', url: bot.url }));
  const unsigned =
    streamSecret === undefined ? ' It accepts every client, because it has no --secret.' : '';
  context.note(`the bot listens on ${bot.url}; press Ctrl-C to stop.${unsigned}`);
  await noteDevBotCredentials(context);
  await whenInterrupted(context.interrupted);
}

/**
 * Returns the dev app's stream secret.
 *
 * @returns undefined if there is no dev app, i.e. with DATABASE_URL or before the gateway's first
 * start
 */
async function devStreamSecret(context: CliContext): Promise<string | undefined> {
  return await readDevApp(context).then(
    (app) => app.streamSecret,
    () => undefined,
  );
}
