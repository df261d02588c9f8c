// Prints the demo's progress and results, as lines for people or as JSON.

import { type BotEvent, describeBotEvent } from '../bot/bot-events.ts';
import { createNotificationLines } from '../notification-lines.ts';
import type { ReceivedNotification } from '../receiver.ts';
import { type Conversation, describeConversation } from './conversation.ts';
import { describeMessage } from './message.ts';
import type { Scene } from './scenes.ts';
import { describeTransfer } from './transfer.ts';

export type Reporter = {
  started(httpUrl: string, receiverUrl: string): void;
  dialled(scene: Scene, target: string, answer: { readonly callId: string }): void;
  notified(scene: Scene | undefined, notification: ReceivedNotification): void;
  bot(event: BotEvent): void;
  summary(results: readonly SceneResult[], conversation: Conversation): void;
};

export type SceneResult = {
  readonly name: string;
  readonly callId: string;
  readonly notifications: number;
  readonly problems: readonly string[];
};

export function jsonReporter(): Reporter {
  const line = (type: string, members: object): void => {
    process.stdout.write(`${JSON.stringify({ type, ...members })}\n`);
  };
  return {
    started: (httpUrl, receiverUrl) => line('started', { httpUrl, receiverUrl }),
    dialled: (scene, target, answer) => line('call', { name: scene.name, target, ...answer }),
    notified: (_scene, notification) => line('notification', notification),
    bot: (event) => line('bot', { event }),
    summary: (results, conversation) =>
      line('summary', {
        ok: results.every(({ problems }) => problems.length === 0),
        calls: results,
        conversation,
      }),
  };
}

export function textReporter(): Reporter {
  const line = (text: string): void => {
    process.stdout.write(`${text}\n`);
  };
  const lineOf = createNotificationLines();
  return {
    started: (httpUrl, receiverUrl) => {
      line(`Offhook runs on ${httpUrl}: SIP engine, sandbox carrier, nats-server, PGlite.`);
      line(`Notifications go to ${receiverUrl}, which checks each signature.\n`);
    },
    dialled: (scene, target) => line(`dialling ${scene.name} (${target})`),
    notified: (scene, notification) => line(lineOf(notification, scene?.name ?? 'unknown')),
    bot: (event) =>
      line(
        `${new Date().toISOString().slice(11, 23)}  the bot          ${describeBotEvent(event)}`,
      ),
    summary: (results, conversation) => {
      line('');
      for (const { name, notifications, problems } of results) {
        const verdict = problems.length === 0 ? 'as expected' : problems.join('; ');
        line(`${name.padEnd(16)} ${notifications} notifications, ${verdict}`);
      }
      line(
        `\nThe conversation, measured at both ends: ${describeConversation(conversation).join(', ')}.`,
      );
      line(`The message, as the mailbox recorded it: ${describeMessage(conversation.message)}.`);
      line(
        `The transfer, as both phones heard it: ${describeTransfer(conversation.transfer ?? {})}.`,
      );
      const ok = results.every(({ problems }) => problems.length === 0);
      line(ok ? '\nAll signed, in order, complete.' : '\nSomething is missing; see above.');
    },
  };
}
