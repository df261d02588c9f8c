// `npm run demo`: runs all of Offhook in one process, with everything embedded. It dials five
// sandbox numbers at the same time: a person, a talker, a voicemail, a person who presses 1, and a
// busy number. The talker gets to talk to the sample bot, the voicemail receives a message, and the
// person who presses 1 is connected to an agent. The exit code is 0 if all expected notifications
// arrived, signed and in order, and if both sides of each conversation heard each other.

import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startApp } from './app/app.ts';
import { startSampleBot } from './cli/bot/sample-bot.ts';
import { type DevApp, readDevApp } from './cli/cli-context.ts';
import { ConversationRecord, problemsOfConversation } from './cli/demo/conversation.ts';
import { demoSound, messageRecording, problemsOfMessage } from './cli/demo/message.ts';
import { jsonReporter, type Reporter, type SceneResult, textReporter } from './cli/demo/report.ts';
import { isEnd, problemsOf, type Scene, scenes } from './cli/demo/scenes.ts';
import {
  menuRecording,
  menuSound,
  numberOf,
  offerMenu,
  problemsOfTransfer,
} from './cli/demo/transfer.ts';
import { type BotClient, createGatewayClient, tokensOf } from './cli/gateway-client.ts';
import { readBody } from './cli/notification-lines.ts';
import { type ReceivedNotification, startReceiver } from './cli/receiver.ts';
import { type Config, loadConfigFrom } from './config.ts';
import { recordingUrl } from './embedded/sandbox/wav-file.ts';
import { errorForPeople } from './lib/error-for-log.ts';
import { createLogger } from './lib/logger.ts';
import { noTrunksFile } from './sip/trunks/trunks-path.ts';

/** The longest scene takes about 20 s, but the machine may be busy. */
const scenesTimeoutMs = 45_000;
const botId = 'demo-bot';

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

/**
 * Returns a configuration with all parts embedded and on free ports. It doesn't depend on the
 * environment or on files in the working folder.
 */
function demoConfig(dataDir: string, verbose: boolean): Config {
  return loadConfigFrom({
    DATA_DIR: dataDir,
    HTTP_HOST: '127.0.0.1',
    HTTP_PORT: '0',
    SIP_HOST: '127.0.0.1',
    SIP_PORT: '0',
    TRUNKS_FILE: noTrunksFile,
    NOTIFY_ALLOWED_NETWORKS: '127.0.0.0/8',
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
      stage.checkEnd();
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
        stage.checkEnd();
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
    report.started(app.runtime.httpUrl, receiver.url);
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

/** The demo's calls and the notifications that have arrived for them. */
class Stage {
  readonly #report: Reporter;
  readonly #record: ConversationRecord;
  readonly #received: ReceivedNotification[] = [];
  readonly #calls = new Map<string, Scene>();
  #wake: () => void = () => undefined;
  #stopped = false;
  /** What went wrong in the application that offers the menu. */
  readonly #faults: string[] = [];

  constructor(report: Reporter, record: ConversationRecord) {
    this.#report = report;
    this.#record = record;
  }

  async dial(httpUrl: string, app: DevApp, { notifyurl, botUrl }: DemoUrls): Promise<void> {
    const gateway = createGatewayClient(httpUrl, tokensOf(app));
    const client = gateway.bot(botId);
    await gateway.sounds.put(demoSound, await readFile(recordingUrl(messageRecording)));
    await gateway.sounds.put(menuSound, await readFile(recordingUrl(menuRecording)));
    for (const scene of scenes) {
      const target = `tel:${numberOf(scene.name)}`;
      const answer = await client.dial({
        target,
        caller: '+12025550199',
        trunk: 'sandbox',
        notifyurl,
        machineDetection: 'detect',
        metadata: { scene: scene.name },
        ...(scene.hasBot === true ? { stream: { url: botUrl } } : {}),
        ...(scene.hasMessage === true ? { voicemail: { play: `sound:${demoSound}` } } : {}),
      });
      this.#calls.set(answer.callId, scene);
      if (scene.hasMenu === true) this.#offerMenu(client, answer.callId);
      this.#report.dialled(scene, target, answer);
    }
    // Some notifications may have overtaken the responses to their dial-out requests.
    for (const notification of this.#received) this.#show(notification);
  }

  #offerMenu(client: BotClient, callId: string): void {
    offerMenu(client, callId).catch((error: unknown) => {
      this.#faults.push(`the menu: ${errorForPeople(error)}`);
    });
  }

  receive(notification: ReceivedNotification): void {
    this.#received.push(notification);
    if (this.#calls.size === scenes.length) this.#show(notification);
  }

  #show(notification: ReceivedNotification): void {
    const { callId = '', transfer } = readBody(notification.body) ?? {};
    const { msToTwoWayAudio } = transfer ?? {};
    if (msToTwoWayAudio !== undefined) this.#record.hearTwoWayAudio(msToTwoWayAudio);
    this.#report.notified(this.#calls.get(callId), notification);
    this.checkEnd();
  }

  /** Checks whether the demo has ended. Call it after any event that might be the last one. */
  checkEnd(): void {
    if (this.#hasEnded()) this.#wake();
  }

  #hasEnded(): boolean {
    const ended = [...this.#calls.keys()].every((callId) =>
      this.#notificationsOf(callId).some((notification) => isEnd(readBody(notification.body))),
    );
    return ended && this.#record.isComplete;
  }

  #notificationsOf(callId: string): readonly ReceivedNotification[] {
    return this.#received.filter((notification) => readBody(notification.body)?.callId === callId);
  }

  /** Ends the demo early but still closes everything properly. */
  stop(): void {
    this.#stopped = true;
    this.#wake();
  }

  /** Waits for all calls to end, but no longer than `timeoutMs`. */
  async finished(timeoutMs: number): Promise<void> {
    if (this.#stopped || this.#hasEnded()) return;
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      timer = setTimeout(resolve, timeoutMs);
    });
    clearTimeout(timer);
  }

  #problemsOf(scene: Scene): readonly string[] {
    const { conversation } = this.#record;
    if (scene.hasBot === true) return problemsOfConversation(conversation);
    if (scene.hasMessage === true) return problemsOfMessage(conversation.message);
    if (scene.hasMenu !== true) return [];
    return [...problemsOfTransfer(conversation.transfer ?? {}), ...this.#faults];
  }

  results(): readonly SceneResult[] {
    return [...this.#calls].map(([callId, scene]) => {
      const received = this.#notificationsOf(callId);
      const problems = [...problemsOf(scene, received), ...this.#problemsOf(scene)];
      return { name: scene.name, callId, notifications: received.length, problems };
    });
  }
}

main().then(
  (ok) => process.exit(ok ? 0 : 1),
  (error: unknown) => {
    process.stderr.write(`demo: ${errorForPeople(error)}\n`);
    process.exit(1);
  },
);
