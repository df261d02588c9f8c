// Determines which calls an app may see, i.e. its account's calls, either for all bots or only for
// the bots that the app was granted.

import type { AppScope } from '../interactions/call-queries.ts';
import type { App } from '../store/apps/app-directory.ts';
import type { BotDirectory } from '../store/apps/bot-directory.ts';

export async function appScopeOf(
  bots: Pick<BotDirectory, 'find'>,
  { accountId, bots: granted }: Pick<App, 'accountId' | 'bots'>,
): Promise<AppScope> {
  if (granted.includes('*')) return { accountId, botIds: 'all' };
  // A grant may name a bot by its stream identifier, or by both of its names.
  const idOf = async (name: string) => (await bots.find(name))?.botId ?? name;
  return { accountId, botIds: [...new Set(await Promise.all(granted.map(idOf)))] };
}
