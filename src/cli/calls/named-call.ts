// Finds a call's id from the text that the user typed, which is the whole id or its beginning.

import { CliError } from '../cli-error.ts';
import type { BotClient, GatewayClient, OverviewClient } from '../gateway-client.ts';
import { ambiguousIdMessage, idPrefixOf, maxShown, tooShortMessage } from '../id-prefix.ts';
import { callLine } from './call-line.ts';

/**
 * Returns the id that starts with the text. If the text can't be the beginning of an id, it is
 * returned unchanged, and the gateway then reports that there is no such call.
 *
 * @throws CliError if the text matches no call or several calls
 */
export async function findCallId(overview: OverviewClient, text: string): Promise<string> {
  const prefix = idPrefixOf('call', text);
  if (prefix === undefined) return text;
  if (prefix === 'too-short') throw new CliError(tooShortMessage(text));
  const limit = String(maxShown + 1);
  const { calls } = await overview.calls({ callIdPrefix: prefix, limit });
  const [call, ...others] = calls;
  if (call === undefined) throw new CliError(`There is no call whose id begins with ${prefix}.`);
  if (others.length === 0) return call.callId;
  const now = new Date();
  throw new CliError(
    ambiguousIdMessage(
      prefix,
      calls.map((one) => callLine(one, now)),
    ),
  );
}

/**
 * Finds the call, and creates a client for its bot.
 *
 * @throws CliError if there is no such call
 */
export async function botOfCall(
  client: GatewayClient,
  { bot }: { readonly bot?: string },
  text: string,
): Promise<{ readonly bot: BotClient; readonly callId: string }> {
  const overview = client.overview(bot);
  const { callId, botId } = await overview.call(await findCallId(overview, text));
  return { bot: client.bot(botId), callId };
}
