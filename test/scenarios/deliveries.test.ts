// What an app's owner sees and changes through the API and the command line: dead letters, rotation
// of the signing secret, and limits against toll fraud.

import { expect, test } from 'vitest';
import { readRuntime } from '../../src/app/runtime-file.ts';
import { limitApp, rotateApp } from '../../src/cli/apps-commands.ts';
import type { CliContext } from '../../src/cli/cli-context.ts';
import {
  listNotifications,
  type ReplayOptions,
  replayNotifications,
} from '../../src/cli/notifications-command.ts';
import { loadConfig } from '../../src/config.ts';
import { verify } from '../../src/notifier/webhooks.ts';
import { eventually } from '../support/eventually.ts';
import { startLaptop } from '../support/laptop.ts';
import { forSuite } from '../support/opened.ts';
import type { Received } from '../support/receiver.ts';

const busy = 'tel:+12025550130';

const laptop = forSuite(startLaptop);

/** Runs a command of the command line and returns what it prints. */
async function run(command: (context: CliContext) => Promise<void>): Promise<readonly string[]> {
  const config = loadConfig({ DATA_DIR: laptop.gateway.dataDir });
  const lines: string[] = [];
  await command({
    config,
    gateway: () => readRuntime(config),
    print: (line) => void lines.push(line),
    note: () => undefined,
    interrupted: new AbortController().signal,
  });
  return lines;
}

type Letter = {
  readonly eventId: string;
  readonly callId: string;
  readonly failure: string;
  readonly lastStatus: number;
};

const deadLetters = async () => {
  const lines = await run((context) =>
    listNotifications(context, undefined, { json: true, failedSince: '1h' }),
  );
  return lines.map((line) => JSON.parse(line) as Letter);
};

test('a notification that a receiver refuses with 410 is a dead letter until it is replayed', async () => {
  const { receiver, dial } = laptop;
  receiver.answerWith(() => 410);
  const { callId } = await dial(busy);
  await eventually(async () => (await deadLetters()).length === 1, 'the dead letter');
  const [letter] = await deadLetters();
  const first = receiver.received.find(({ body }) => body.callId === callId);
  expect(letter).toMatchObject({ callId, failure: 'gone', lastStatus: 410 });

  receiver.answerWith(() => 200);
  const replay = () => run((context) => replayNotifications(context, letter?.eventId, {}));
  expect(JSON.parse((await replay())[0] ?? '')).toMatchObject({ replayed: true });
  await receiver.untilEnded(callId);

  const again = receiver.accepted().find(({ body }) => body.callId === callId);
  expect(again?.rawBody).toBe(first?.rawBody);
  expect(again?.headers['webhook-id']).toBe(letter?.eventId);
  expect(await deadLetters()).toEqual([]);
  await eventually(
    async () => (await replay())[0]?.includes('"delivered"') === true,
    'the delivery is recorded',
  );
  const log = await run((context) => listNotifications(context, callId, {}));
  expect(log.join('\n')).toMatch(
    /Failed {2}delivered[\s\S]+1\. .+ 410[\s\S]+2\. .+ 200[\s\S]+replayed by app-dev/,
  );
});

test('dead letters of a period or of a call are replayed for all bots', async () => {
  const { receiver, dial } = laptop;
  const replay = (options: ReplayOptions) =>
    run((context) => replayNotifications(context, undefined, options));
  for (const select of [() => ({ failedSince: '1h' }), (call: string) => ({ call })]) {
    receiver.answerWith(() => 410);
    const { callId } = await dial(busy);
    await eventually(async () => (await deadLetters()).length === 1, 'the dead letter');
    receiver.answerWith(() => 200);

    expect(await replay(select(callId))).toEqual(['{"replayed":1}']);
    await receiver.untilEnded(callId);
    expect(await replay(select(callId))).toEqual(['{"replayed":0}']);
  }
});

test('during a rotation either secret verifies; afterwards only the new one does', async () => {
  const { receiver, dial, gateway } = laptop;
  const next = async (): Promise<Received> => {
    const { callId } = await dial(busy);
    await receiver.untilEnded(callId);
    const received = receiver.accepted().find(({ body }) => body.callId === callId);
    if (received === undefined) throw new Error('not received');
    return received;
  };
  const verifies = ({ rawBody, headers }: Received, secret: string) =>
    verify(rawBody, headers['gateway-signature'], secret).ok;
  const rotate = async (grace: string, force = false) => {
    const printed = await run((context) =>
      rotateApp(context, gateway.dialer.app.appId, 'webhook-secret', { grace, force }),
    );
    return (JSON.parse(printed.join('')) as { webhookSecret: string }).webhookSecret;
  };
  const first = gateway.dialer.app.webhookSecret;

  const second = await rotate('24h');
  const during = await next();
  expect([first, second].map((secret) => verifies(during, secret))).toEqual([true, true]);
  expect(verify(during.rawBody, during.headers['gateway-signature'], [second, first]).ok).toBe(
    true,
  );
  expect(String(during.headers['webhook-signature']).split(' ')).toHaveLength(2);

  const third = await rotate('0s', true);
  const afterwards = await next();
  expect([first, second, third].map((secret) => verifies(afterwards, secret))).toEqual([
    false,
    false,
    true,
  ]);
});

test('an app dials only what its limits allow, and a repeated request gets the first answer', async () => {
  const { dialer } = laptop.gateway;
  const limit = (options: Parameters<typeof limitApp>[2]) =>
    run((context) => limitApp(context, dialer.app.appId, options));
  const post = (target: string, key = 'none') =>
    dialer.post({ target }, key === 'none' ? {} : { 'Idempotency-Key': key });

  await limit({ prefixes: '+1', denyPrefixes: '+1900' });
  expect((await post('tel:+4930123456')).status).toBe(403);
  expect((await post('tel:+19005551234')).status).toBe(403);
  expect((await post(busy, 'key-1')).status).toBe(200);

  await limit({ prefixes: '+49', callsADay: '1' });
  expect((await post(busy, 'key-1')).headers['idempotent-replayed']).toBe('true');
  expect((await post(busy, 'key-2')).status).toBe(403);

  await limit({ prefixes: 'none', denyPrefixes: 'none' });
  const refused = await post(busy);
  expect(refused.status).toBe(429);
  expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
  await limit({ callsADay: 'none' });
  expect((await post(busy)).status).toBe(200);
});
