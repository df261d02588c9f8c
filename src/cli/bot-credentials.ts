// What a bot's own settings ask for by Twilio's names.

import { accountSidOf } from '../streams/stream-ids.ts';
import { type CliContext, readDevApp } from './cli-context.ts';

export function noteBotCredentials(context: CliContext, appId: string): void {
  context.note(
    `Bots know the app ${appId} as account_sid ${accountSidOf(appId)}; their auth_token is its streamSecret.`,
  );
}

/** Shows the credentials of the app that the embedded profile makes. Shows nothing without such an app. */
export async function noteDevBotCredentials(context: CliContext): Promise<void> {
  const app = await readDevApp(context).catch(() => undefined);
  if (app?.streamSecret !== undefined) noteBotCredentials(context, app.appId);
}
