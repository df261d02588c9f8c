// Determines which calls a request may see: its account's calls for the bot in its path, for all
// bots, or only for the bots that the app was granted.

import type { FastifyRequest } from 'fastify';
import type { Clients } from '../http/http.ts';
import type { AppScope, CallScope } from '../interactions/call-queries.ts';
import type { App } from '../store/apps/app-directory.ts';
import type { BotDirectory } from '../store/apps/bot-directory.ts';

/** Returns the scope of a request whose path names a bot. */
export function botScopeOf(
  clients: Pick<Clients, 'appOf' | 'botOf'>,
  request: FastifyRequest,
): CallScope {
  return { accountId: clients.appOf(request).accountId, botId: clients.botOf(request).botId };
}

export async function appScopeOf(
  bots: Pick<BotDirectory, 'find'>,
  { accountId, bots: granted }: Pick<App, 'accountId' | 'bots'>,
): Promise<AppScope> {
  if (granted.includes('*')) return { accountId, botIds: 'all' };
  // A grant may name a bot by its stream identifier, or by both of its names.
  const idOf = async (name: string) => (await bots.find(name))?.botId ?? name;
  return { accountId, botIds: [...new Set(await Promise.all(granted.map(idOf)))] };
}
