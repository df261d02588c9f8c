// Whose calls an app may see: those of its account, of every bot or of the bots that it was granted.

import type { AppScope } from '../interactions/call-queries.ts';
import type { App } from '../store/apps/app-directory.ts';
import type { BotDirectory } from '../store/apps/bot-directory.ts';

export async function appScopeOf(
  bots: Pick<BotDirectory, 'find'>,
  { accountId, bots: granted }: Pick<App, 'accountId' | 'bots'>,
): Promise<AppScope> {
  if (granted.includes('*')) return { accountId, botIds: 'all' };
  // A bot may have been granted by its alias, or by both of its names.
  const idOf = async (name: string) => (await bots.find(name))?.botId ?? name;
  return { accountId, botIds: [...new Set(await Promise.all(granted.map(idOf)))] };
}
