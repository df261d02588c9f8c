// Finds the bots that an app may see, for requests that don't name a bot. Grants can use a bot's id
// or alias, so we resolve aliases to ids.

import type { App } from '../store/apps/app-directory.ts';
import type { BotDirectory } from '../store/apps/bot-directory.ts';

/** @returns undefined if the app may see every bot of its account */
export async function grantedBotIds(
  bots: Pick<BotDirectory, 'find'>,
  { bots: granted }: Pick<App, 'bots'>,
): Promise<readonly string[] | undefined> {
  if (granted.includes('*')) return undefined;
  const ids = await Promise.all(
    granted.map(async (name) => (await bots.find(name))?.botId ?? name),
  );
  // The app may have been granted both names of a bot.
  return [...new Set(ids)];
}
