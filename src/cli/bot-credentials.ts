// Prints an app's credentials under Twilio's names, because bot libraries use those names.

import { accountSidOf } from '../streams/stream-ids.ts';
import { type CliContext, readDevApp } from './cli-context.ts';

export function noteBotCredentials(context: CliContext, appId: string): void {
  context.note(
    `Bots know the app ${appId} as account_sid ${accountSidOf(appId)}; their auth_token is its streamSecret.`,
  );
}

/** Prints the dev app's credentials, or nothing if there is no dev app. */
export async function noteDevBotCredentials(context: CliContext): Promise<void> {
  const app = await readDevApp(context).catch(() => undefined);
  if (app?.streamSecret !== undefined) noteBotCredentials(context, app.appId);
}
