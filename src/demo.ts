// `npm run demo`: the whole of Offhook in one process, with every embedded part, dialling the sandbox's person, talker, voicemail
// and busy number at once; the sample bot talks to the talker, and a message is left in the voicemail. Exits 0 when every notification that must come came, signed and in
// order, and the two heard each other.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type App, startApp } from './app/app.ts';
import { type BotEvent, describeBotEvent } from './cli/bot/bot-events.ts';
import { startSampleBot } from './cli/bot/sample-bot.ts';
import { type DevApp, readDevApp } from './cli/cli-context.ts';
import {
  type Conversation,
  ConversationRecord,
  describeConversation,
  problemsOfConversation,
} from './cli/demo-conversation.ts';
import {
  demoSound,
  describeMessage,
  problemsOfMessage,
  uploadDemoSound,
} from './cli/demo-message.ts';
import { isEnd, problemsOf, type Scene, scenes } from './cli/demo-scenes.ts';
import { createGatewayClient, tokensOf } from './cli/gateway-client.ts';
import { describeNotification, readBody } from './cli/notification-lines.ts';
import { type ReceivedNotification, startReceiver } from './cli/receiver.ts';
import { type Config, loadConfigWith } from './config.ts';
import { sandboxNumbers } from './embedded/sandbox/sandbox-numbers.ts';
import { errorForPeople } from './lib/error-for-log.ts';
import { createLogger } from './lib/logger.ts';

/** The longest scene takes some 20 s; a machine that is busy elsewhere gets twice that. */
const scenesTimeoutMs = 45_000;
const botId = 'demo-bot';

type Reporter = {
  started(app: App, receiverUrl: string): void;
  dialled(scene: Scene, target: string, answer: { readonly callId: string }): void;
  notified(scene: Scene | undefined, notification: ReceivedNotification): void;
  bot(event: BotEvent): void;
  summary(results: readonly SceneResult[], conversation: Conversation): void;
};

type SceneResult = {
  readonly name: string;
  readonly callId: string;
  readonly notifications: number;
  readonly problems: readonly string[];
};

async function main(): Promise<boolean> {
  const { values } = parseArgs({
    options: { json: { type: 'boolean' }, verbose: { type: 'boolean' } },
  });
  const dataDir = await mkdtemp(join(tmpdir(), 'offhook-demo-'));
  try {
    const config = demoConfig(dataDir, values.verbose === true);
    return await play(config, values.json === true ? jsonReporter() : textReporter());
  } finally {
    await rm(dataDir, { recursive: true, force: true });
  }
}

/** Everything embedded, on free ports, whatever else the environment says. */
function demoConfig(dataDir: string, verbose: boolean): Config {
  return loadConfigWith({
    DATA_DIR: dataDir,
    HTTP_HOST: '127.0.0.1',
    HTTP_PORT: '0',
    PUBLIC_URL: '',
    DATABASE_URL: '',
    SECRETS_KEY: '',
    NATS_URL: '',
    NATS_PREFIX: '',
    DRACHTIO_URL: '',
    SIP_HOST: '127.0.0.1',
    SIP_PORT: '0',
    SIP_ALLOWED_NETWORKS: '',
    MEDIA_HOST: '',
    MEDIA_PUBLIC_HOST: '',
    NOTIFY_ALLOWED_NETWORKS: '127.0.0.0/8',
    STREAM_ALLOWED_NETWORKS: '',
    SANDBOX: 'on',
    LOG_LEVEL: verbose ? 'info' : 'silent',
  });
}

async function play(config: Config, report: Reporter): Promise<boolean> {
  const logger = createLogger({ level: config.logLevel, nodeId: 'demo', toStderr: true });
  const record = new ConversationRecord();
  const stage = new Stage(report, record);
  const app = await startApp(config, {
    logger,
    onSandboxCallEnded: (summary) => {
      record.hearSandbox(summary);
      stage.look();
    },
  });
  try {
    const devApp = await readDevApp({ config });
    await using bot = await startSampleBot({
      host: '127.0.0.1',
      port: 0,
      streamSecret: devApp.streamSecret,
      onEvent: (event) => {
        record.hearBot(event);
        report.bot(event);
        stage.look();
      },
    });
    await using receiver = await startReceiver({
      host: '127.0.0.1',
      port: 0,
      webhookSecret: devApp.webhookSecret,
      onNotification: (notification) => stage.receive(notification),
    });
    process.once('SIGINT', () => stage.stop());
    process.once('SIGTERM', () => stage.stop());
    report.started(app, receiver.url);
    await stage.dial(app.runtime.httpUrl, devApp, { notifyurl: receiver.url, botUrl: bot.url });
    await stage.finished(scenesTimeoutMs);
    const results = stage.results();
    report.summary(results, record.conversation);
    return results.every((result) => result.problems.length === 0);
  } finally {
    await app.close();
  }
}

type DemoUrls = { readonly notifyurl: string; readonly botUrl: string };

/** The calls of the demo, and what came for each. */
class Stage {
  readonly #report: Reporter;
  readonly #record: ConversationRecord;
  readonly #received: ReceivedNotification[] = [];
  readonly #calls = new Map<string, Scene>();
  #wake: () => void = () => undefined;
  #stopped = false;

  constructor(report: Reporter, record: ConversationRecord) {
    this.#report = report;
    this.#record = record;
  }

  async dial(httpUrl: string, app: DevApp, { notifyurl, botUrl }: DemoUrls): Promise<void> {
    const client = createGatewayClient(httpUrl, tokensOf(app)).bot(botId);
    await uploadDemoSound(httpUrl, tokensOf(app));
    for (const scene of scenes) {
      const { number } = sandboxNumbers.find(({ name }) => name === scene.name) ?? { number: '' };
      const target = `tel:${number}`;
      const answer = await client.dial({
        target,
        caller: '+12025550199',
        // A trunks.yaml that lies about does not matter here.
        trunk: 'sandbox',
        notifyurl,
        machineDetection: 'detect',
        metadata: { scene: scene.name },
        ...(scene.hasBot === true ? { stream: { url: botUrl } } : {}),
        ...(scene.hasMessage === true ? { voicemail: { play: `sound:${demoSound}` } } : {}),
      });
      this.#calls.set(answer.callId, scene);
      this.#report.dialled(scene, target, answer);
    }
    // What arrived before the answer to its request was read.
    for (const notification of this.#received) this.#tell(notification);
  }

  receive(notification: ReceivedNotification): void {
    this.#received.push(notification);
    if (this.#calls.size === scenes.length) this.#tell(notification);
  }

  #tell(notification: ReceivedNotification): void {
    const callId = readBody(notification.body)?.callId ?? '';
    this.#report.notified(this.#calls.get(callId), notification);
    this.look();
  }

  /** Something came that may have been the last. */
  look(): void {
    if (this.#isOver()) this.#wake();
  }

  #isOver(): boolean {
    const ended = [...this.#calls.keys()].every((callId) =>
      this.#of(callId).some((notification) => isEnd(readBody(notification.body))),
    );
    return ended && this.#record.isComplete;
  }

  #of(callId: string): readonly ReceivedNotification[] {
    return this.#received.filter((notification) => readBody(notification.body)?.callId === callId);
  }

  /** Leaves early; everything is closed as at the end. */
  stop(): void {
    this.#stopped = true;
    this.#wake();
  }

  /** Until every call ended, or the time is up. */
  async finished(timeoutMs: number): Promise<void> {
    if (this.#stopped || this.#isOver()) return;
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      timer = setTimeout(resolve, timeoutMs);
    });
    clearTimeout(timer);
  }

  results(): readonly SceneResult[] {
    return [...this.#calls].map(([callId, scene]) => {
      const received = this.#of(callId);
      const problems = [
        ...problemsOf(scene, received),
        ...(scene.hasBot === true ? problemsOfConversation(this.#record.conversation) : []),
        ...(scene.hasMessage === true ? problemsOfMessage(this.#record.conversation.message) : []),
      ];
      return { name: scene.name, callId, notifications: received.length, problems };
    });
  }
}

function jsonReporter(): Reporter {
  const line = (type: string, members: object): void => {
    process.stdout.write(`${JSON.stringify({ type, ...members })}\n`);
  };
  return {
    started: ({ runtime }, receiverUrl) =>
      line('started', { httpUrl: runtime.httpUrl, receiverUrl }),
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

function textReporter(): Reporter {
  const line = (text: string): void => void process.stdout.write(`${text}\n`);
  return {
    started: ({ runtime }, receiverUrl) => {
      line(`Offhook runs on ${runtime.httpUrl}: SIP engine, sandbox carrier, nats-server, PGlite.`);
      line(`Notifications go to ${receiverUrl}, where each signature is checked.\n`);
    },
    dialled: (scene, target) => line(`dialling ${scene.name} (${target})`),
    notified: (scene, notification) =>
      line(describeNotification(notification, scene?.name ?? 'unknown')),
    bot: (event) =>
      line(`${new Date().toISOString().slice(11, 23)}  the bot       ${describeBotEvent(event)}`),
    summary: (results, conversation) => {
      line('');
      for (const { name, notifications, problems } of results) {
        const verdict = problems.length === 0 ? 'as expected' : problems.join('; ');
        line(`${name.padEnd(10)} ${notifications} notifications, ${verdict}`);
      }
      line(
        `\nThe conversation, measured at both ends: ${describeConversation(conversation).join(', ')}.`,
      );
      line(`The message, as the mailbox recorded it: ${describeMessage(conversation.message)}.`);
      const ok = results.every(({ problems }) => problems.length === 0);
      line(ok ? '\nAll signed, in order, complete.' : '\nSomething is missing; see above.');
    },
  };
}

main().then(
  (ok) => process.exit(ok ? 0 : 1),
  (error: unknown) => {
    process.stderr.write(`demo: ${errorForPeople(error)}\n`);
    process.exit(1);
  },
);
