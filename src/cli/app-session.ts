// A command that acts for an app through the API of the gateway that runs here.

import { type CliContext, requireGateway } from './cli-context.ts';
import { createGatewayClient, type GatewayClient } from './gateway-client.ts';
import { openTokens } from './tokens.ts';

/** `app` left out: the dev app. `bot` left out: every bot of the app. */
export type AppOptions = { readonly app?: string; readonly bot?: string };

export async function withGateway(
  context: CliContext,
  { app: appId }: AppOptions,
  work: (client: GatewayClient) => Promise<void>,
): Promise<void> {
  await using app = await openTokens(context, appId);
  const { httpUrl } = await requireGateway(context);
  await work(createGatewayClient(httpUrl, app.tokens));
}
