// From what is typed for a call to its id: the whole id, or enough of its beginning.

import { CliError } from '../cli-error.ts';
import type { BotClient, GatewayClient, OverviewClient } from '../gateway-client.ts';
import { idPrefixOf, mostShown, severalBegin, tooShort } from '../id-prefix.ts';
import { callLine } from './call-line.ts';

/**
 * Text that no id begins with is returned unchanged, so that the gateway says that there is no such
 * call.
 *
 * @throws CliError if no call has an id that begins so, or several have
 */
export async function callIdNamed(overview: OverviewClient, text: string): Promise<string> {
  const prefix = idPrefixOf('call', text);
  if (prefix === undefined) return text;
  if (prefix === 'too-short') throw new CliError(tooShort(text));
  const limit = String(mostShown + 1);
  const { calls } = await overview.calls({ callIdPrefix: prefix, limit });
  const [call, ...others] = calls;
  if (call === undefined) throw new CliError(`There is no call whose id begins with ${prefix}.`);
  if (others.length === 0) return call.callId;
  const now = new Date();
  throw new CliError(
    severalBegin(
      prefix,
      calls.map((one) => callLine(one, now)),
    ),
  );
}

/** Finds the call and its bot, for operations of a bot. @throws CliError if there is no such call. */
export async function botOfCall(
  client: GatewayClient,
  { bot }: { readonly bot?: string },
  text: string,
): Promise<{ readonly bot: BotClient; readonly callId: string }> {
  const overview = client.overview(bot);
  const { callId, botId } = await overview.call(await callIdNamed(overview, text));
  return { bot: client.bot(botId), callId };
}
