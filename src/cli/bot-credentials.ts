// Prints the credentials of an app under Twilio's names, because bot libraries ask for those.

import { accountSidOf } from '../streams/stream-ids.ts';
import { type CliContext, readDevApp } from './cli-context.ts';

export function noteBotCredentials(context: CliContext, appId: string): void {
  context.note(
    `Bots know the app ${appId} as account_sid ${accountSidOf(appId)}; their auth_token is its streamSecret.`,
  );
}

/** Prints the credentials of the dev app. Prints nothing if there is no dev app. */
export async function noteDevBotCredentials(context: CliContext): Promise<void> {
  const app = await readDevApp(context).catch(() => undefined);
  if (app?.streamSecret !== undefined) noteBotCredentials(context, app.appId);
}
