// offhook notifications list: what was sent for a call, and how each attempt went.

import { type CliContext, requireGateway } from './cli-context.ts';
import { createGatewayClient } from './gateway-client.ts';
import { readBody } from './notification-lines.ts';
import { openTokens } from './tokens.ts';

export async function listNotifications(
  context: CliContext,
  callId: string,
  options: { readonly bot: string; readonly app?: string; readonly json?: boolean },
): Promise<void> {
  await using app = await openTokens(context, options.app);
  const { httpUrl } = await requireGateway(context);
  const client = createGatewayClient(httpUrl, app.tokens, options.bot);
  const notifications = await client.notifications(callId);
  if (notifications.length === 0) context.note('No notification yet, or no notify URL.');
  for (const notification of notifications) {
    if (options.json === true) {
      context.print(JSON.stringify(notification));
      continue;
    }
    const { sequence, eventId, state } = notification;
    const body = readBody(notification.body);
    const what = [body?.status, body?.machineDetection].filter((part) => part !== undefined);
    context.print(`#${sequence} ${what.join(' ')}  ${state}  ${eventId}`);
    for (const { attempt, startedAt, durationMs, responseStatus, error } of notification.attempts) {
      context.print(
        `   ${attempt}. ${startedAt}  ${responseStatus ?? error ?? 'no answer'}  ${durationMs} ms`,
      );
    }
  }
}
