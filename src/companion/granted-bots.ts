// Which bots an app may see, where a request names none: by their own ids, since an app is granted a bot by either name.

import type { App } from '../store/apps/app-directory.ts';
import type { BotDirectory } from '../store/apps/bot-directory.ts';

/** Undefined: every bot of its account. */
export async function grantedBotIds(
  bots: Pick<BotDirectory, 'find'>,
  { bots: granted }: Pick<App, 'bots'>,
): Promise<readonly string[] | undefined> {
  if (granted.includes('*')) return undefined;
  const ids = await Promise.all(
    granted.map(async (name) => (await bots.find(name))?.botId ?? name),
  );
  // It may have been granted one by both of its names.
  return [...new Set(ids)];
}
