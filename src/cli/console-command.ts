// Implements `offhook console`, which prints a link that signs a browser in.

import { z } from 'zod';
import { openTokens } from './app-session.ts';
import { type CliContext, requireGateway } from './cli-context.ts';
import { requestJson } from './http-json.ts';

const answer = z.object({ url: z.url(), validForS: z.number() });
const tokenTtlS = 60;

export async function printConsoleLink(
  context: CliContext,
  options: { readonly app?: string },
): Promise<void> {
  await using app = await openTokens(context, options.app);
  const { httpUrl } = await requireGateway(context);
  const { url, validForS } = answer.parse(
    await requestJson(`${httpUrl}/console/link`, {
      method: 'POST',
      body: {},
      headers: { auth: await app.tokens(tokenTtlS) },
    }),
  );
  context.print(url);
  context.note(
    `The link works once, within ${validForS} s. The browser then sees what the app may see.`,
  );
}
