// Implements `offhook call`, which places a call. With --follow, it prints events until the call
// ends.

import { setTimeout as pause } from 'node:timers/promises';
import { lineOf } from '../../calls/contract/event-table.ts';
import type { CallDetails } from '../../interactions/call-queries.ts';
import { openTokens } from '../app-session.ts';
import { type CliContext, type DevApp, requireGateway } from '../cli-context.ts';
import { type BotClient, createGatewayClient } from '../gateway-client.ts';
import { createNotificationLines, readBody } from '../notification-lines.ts';
import { type Receiver, startReceiver } from '../receiver.ts';
import { createCallTimeline } from './call-timeline.ts';
import { type DialOptions, dialRequest } from './dial-options.ts';

export type CallOptions = DialOptions & {
  readonly notify?: string;
  readonly bot: string;
  readonly app?: string;
  readonly follow?: boolean;
};

/** This is short enough to look live, but doesn't put much load on the gateway. */
const pollMs = 250;
/**
 * Maximum time to wait for the last notification after the call has ended. The notification usually
 * arrives within milliseconds, but takes longer if the receiver has rejected an earlier attempt.
 */
const lastNotificationMs = 15_000;

export async function placeCall(
  context: CliContext,
  target: string,
  options: CallOptions,
): Promise<void> {
  await using app = await openTokens(context, options.app);
  const { httpUrl } = await requireGateway(context);
  const client = createGatewayClient(httpUrl, app.tokens).bot(options.bot);
  const notified = { end: false };
  // This command only knows the dev app's secret, so it can't verify other apps' signatures. For
  // those apps, it only prints the timeline and doesn't start a receiver.
  const followed = options.follow === true && options.notify === undefined;
  await using receiver =
    followed && app.devApp !== undefined
      ? await ownReceiver(context, app.devApp, notified)
      : undefined;
  const notifyurl = options.notify ?? receiver?.url;

  const answer = await client.dial(dialRequest(target, notifyurl, options));
  context.print(JSON.stringify(answer));
  if (options.follow !== true) return;
  const call = await follow(context, client, answer.callId);
  if (receiver !== undefined) await until(() => notified.end, lastNotificationMs);
  context.print(
    `ended: ${[call.outcome ?? call.state, findVerdict(call)].filter(Boolean).join(', ')} (${call.reason ?? ''}, ${call.reasonCode ?? ''})`,
  );
}

async function ownReceiver(
  context: CliContext,
  app: DevApp,
  notified: { end: boolean },
): Promise<Receiver> {
  const lineOf = createNotificationLines();
  return await startReceiver({
    host: '127.0.0.1',
    port: 0,
    webhookSecret: app.webhookSecret,
    onNotification: (notification) => {
      context.print(lineOf(notification, 'notified'));
      const status = readBody(notification.body)?.status;
      if (status === 'completed' || status === 'Failed') notified.end = true;
    },
  });
}

async function follow(
  context: CliContext,
  client: BotClient,
  callId: string,
): Promise<CallDetails> {
  const timeline = createCallTimeline();
  let hangingUp = false;
  for (;;) {
    if (context.interrupted.aborted && !hangingUp) {
      hangingUp = true;
      context.note('hanging up; press Ctrl-C again to exit');
      await client.end(callId);
    }
    const call = await client.call(callId);
    for (const entry of timeline.take(call.timeline, performance.now())) {
      context.print(
        `${entry.time.slice(11, 23)}  ${entry.type.padEnd(13)} ${lineOf(entry.type, entry.data)}`,
      );
    }
    if (call.state === 'ended' && !timeline.waiting) return call;
    await pause(pollMs);
  }
}

async function until(condition: () => boolean, withinMs: number): Promise<void> {
  const deadline = performance.now() + withinMs;
  while (!condition() && performance.now() < deadline) {
    await pause(20);
  }
}

/**
 * Returns the verdict.
 *
 * @returns undefined if detection was off or the call wasn't answered
 */
function findVerdict({ timeline }: CallDetails): string | undefined {
  const end = timeline.findLast(({ type }) => type === 'completed');
  return (end?.data as { readonly machineDetection?: string } | undefined)?.machineDetection;
}
