// Tests the sample bot with the messages of a gateway: its wire format and its conversation.

import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { BotEvent } from '../../src/cli/bot/bot-events.ts';
import { type SampleBot, startSampleBot } from '../../src/cli/bot/sample-bot.ts';
import { createSoundLibrary } from '../../src/embedded/sandbox/sounds.ts';
import { Talker } from '../../src/embedded/sandbox/talker.ts';
import { readMulawBytes, recordingUrl } from '../../src/embedded/sandbox/wav-file.ts';
import { eventually } from '../support/eventually.ts';
import { FakeGateway } from '../support/streams/fake-gateway.ts';
import { problemsOfStream } from '../support/streams/stream-messages.ts';
import { removeFolder, run, temporaryFolder } from './support.ts';

const recording = (name: string) => readMulawBytes(recordingUrl(name));
const lengthMs = (name: string) => recording(name).length / 8;
const secret = 'ss_test';

let bot: SampleBot;
let events: BotEvent[];

beforeEach(async () => {
  // Each test has its own array: a closed bot may still report the end of its call.
  const told: BotEvent[] = [];
  events = told;
  bot = await startSampleBot({
    host: '127.0.0.1',
    port: 0,
    streamSecret: secret,
    onEvent: (event) => told.push(event),
  });
});
afterEach(() => bot[Symbol.asyncDispose]());

async function connect(customParameters: Readonly<Record<string, string>> = {}) {
  return await FakeGateway.connect({
    url: `${bot.url}audio?tenant=acme`,
    streamSecret: secret,
    customParameters,
    // The bot's clock is the audio, so it can run faster than real time.
    speed: 20,
  });
}

const typesOf = (all: readonly BotEvent[]) => all.map(({ type }) => type);
const saidLines = () => events.flatMap((event) => (event.type === 'said' ? [event.line] : []));
const untilSaid = (line: string) => eventually(() => saidLines().includes(line), `said ${line}`);
const marksOf = (gateway: FakeGateway) => gateway.marks.map(({ name }) => name);

/** Returns whether the far end heard only silence in this interval. */
const isSilent = (gateway: FakeGateway, fromMs: number, toMs: number) =>
  gateway.heard
    .slice(fromMs / 20, toMs / 20)
    .every((frame) => frame.every((byte) => byte === 0xff));

describe('a conversation with the sample bot', () => {
  test('waits for the first word, greets, repeats, says goodbye and hangs up', async () => {
    const gateway = await connect();
    gateway.speak(recording('person-hello'));
    await untilSaid('greeting');
    gateway.speak(recording('talker-answer'));
    await eventually(() => saidLines().filter((line) => line === 'you-said').length === 1, 'once');
    gateway.speak(recording('person-name'));
    await eventually(() => gateway.closeCode !== undefined, 'the bot hangs up');

    expect(gateway.closeCode).toBe(1000);
    expect(marksOf(gateway)).toEqual(['greeting', 'you-said', 'you-said', 'goodbye']);
    expect(events.at(-1)).toMatchObject({ turns: 3, linesSaid: 4, interruptions: 0 });
    expect(gateway.ignored).toEqual([]);
    expect(problemsOfStream(gateway.sent, { isOver: false })).toEqual([]);
  });

  test('repeats exactly the bytes that it heard', async () => {
    const gateway = await connect({ reconnect: '1' });
    gateway.speak(recording('talker-answer'));
    await untilSaid('you-said');
    gateway.stop();

    const played = Buffer.concat(gateway.heard);
    // The first milliseconds may come before the bot detected the voice.
    expect(played.includes(Buffer.from(recording('talker-answer').subarray(1_600)))).toBe(true);
  });

  test('greets a silent person, and says goodbye', async () => {
    const gateway = await connect();
    await eventually(() => gateway.closeCode !== undefined, 'the bot hangs up');

    expect(saidLines()).toEqual(['greeting', 'goodbye']);
    expect(gateway.marks[0]?.atMs).toBeGreaterThanOrEqual(2_000 + lengthMs('bot-greeting'));
  });

  test('falls silent at once when it is interrupted', async () => {
    const gateway = await connect();
    gateway.speak(recording('person-hello'));
    await eventually(() => gateway.queuedMs > 0, 'it greets');
    const greetedAtMs = gateway.heardMs;
    await eventually(() => gateway.heardMs >= greetedAtMs + 1_000, 'a second of the greeting');
    gateway.speak(recording('talker-interruption'));
    await eventually(() => gateway.marks.length > 0, 'cleared');
    const clearedAtMs = gateway.marks[0]?.atMs ?? 0;

    expect(gateway.marks[0]).toMatchObject({ name: 'greeting', cleared: true });
    expect(isSilent(gateway, greetedAtMs, clearedAtMs)).toBe(false);
    await untilSaid('you-said');
    // The bot first lets the person finish, which includes a pause of 700 ms.
    expect(isSilent(gateway, clearedAtMs, clearedAtMs + 700)).toBe(true);
    expect(typesOf(events)).toEqual(['started', 'heard', 'interrupted', 'heard', 'said']);
    gateway.stop();
    await eventually(() => events.at(-1)?.type === 'ended', 'it saw the end');
    expect(events.at(-1)).toMatchObject({ interruptions: 1, code: 1000 });
  });

  test('falls silent for a machine, and leaves its message after the beep', async () => {
    const gateway = await connect();
    await eventually(() => gateway.queuedMs > 0, 'it greets');
    gateway.detect({ event: 'amd_machine_detected', reason: 'long-greeting' });
    await eventually(() => marksOf(gateway).length === 1, 'the greeting was cleared');
    gateway.speak(recording('voicemail-greeting'));
    gateway.detect({ event: 'amd_tone_detected' });
    gateway.detect({ event: 'amd_stopped', reason: 'tone' });
    await eventually(() => gateway.closeCode !== undefined, 'the bot hangs up');

    expect(saidLines()).toEqual(['message']);
    expect(events.flatMap((event) => (event.type === 'amd' ? [event.amd.event] : []))).toEqual([
      'amd_machine_detected',
      'amd_tone_detected',
      'amd_stopped',
    ]);
  });

  test('ends the call on the key #', async () => {
    const gateway = await connect();
    gateway.press('1');
    gateway.press('#');
    await eventually(() => gateway.closeCode !== undefined, 'the bot hangs up');

    expect(typesOf(events)).toEqual(['started', 'dtmf', 'dtmf', 'said', 'ended']);
  });

  test('does not greet again after a reconnection', async () => {
    const first = await connect();
    first.break();
    const gateway = await connect({ reconnect: '1' });
    await eventually(() => gateway.closeCode !== undefined, 'the bot hangs up');

    expect(saidLines()).toEqual(['goodbye']);
  });
});

test('the bot and the sandbox’s talker have a conversation', async () => {
  const talker = new Talker(createSoundLibrary(), { interrupts: true });
  const gateway = await FakeGateway.connect({
    url: bot.url,
    streamSecret: secret,
    farEnd: talker,
    speed: 20,
  });
  await eventually(() => gateway.closeCode !== undefined, 'the bot hangs up');

  expect(saidLines()).toEqual(['you-said', 'you-said', 'goodbye']);
  expect(events.at(-1)).toMatchObject({ turns: 3, interruptions: 1 });
  // The call ended before the turn of the goodbye ended.
  expect(talker.summary).toMatchObject({ turns: 3, answers: 1 });
  expect(talker.summary.silencedAfterMs).toBeLessThan(1_000);
});

test('the bot ignores text that is not a message of a gateway', async () => {
  const gateway = await connect({ reconnect: '1' });
  for (const nonsense of [
    '',
    '{',
    'null',
    '[]',
    '"media"',
    '{"event":5}',
    '{"event":"start","start":7}',
    '{"event":"media"}',
    '{"event":"media","media":{"payload":5}}',
    '{"event":"media","media":{"payload":"no base64"}}',
    '{"event":"mark","mark":{"name":"never set"}}',
    '{"event":"amd","amd":null}',
    '{"event":"dtmf"}',
    '{"event":"something else"}',
    Buffer.from([0, 1, 2]),
  ]) {
    gateway.sendNonsense(nonsense);
  }
  gateway.speak(recording('talker-answer'));
  await untilSaid('you-said');
  gateway.stop();

  expect(gateway.ignored).toEqual([]);
});

describe('a connection', () => {
  test.each([
    ['without a signature', undefined],
    ['with another secret', 'ss_other'],
  ])('is refused %s', async (_name, other) => {
    const signed = other === undefined ? {} : { streamSecret: other };

    await expect(FakeGateway.connect({ url: bot.url, ...signed })).rejects.toThrow('401');
    expect(typesOf(events)).toEqual(['refused']);
  });
});

test('offhook bot runs the sample bot', async () => {
  const dataDir = await temporaryFolder();
  onTestFinished(() => removeFolder(dataDir));
  const command = run('cli', ['bot', '--port', '0', '--json'], { DATA_DIR: dataDir });
  const { url } = JSON.parse(await command.line()) as { readonly url: string };
  const gateway = await FakeGateway.connect({ url, speed: 20 });
  gateway.press('#');
  const lines = [JSON.parse(await command.line()), JSON.parse(await command.line())];
  await eventually(() => gateway.closeCode !== undefined, 'the bot hangs up');
  command.process.kill('SIGINT');

  expect((await command.finished).code).toBe(0);
  expect(lines).toMatchObject([
    { type: 'started', callId: 'call-1' },
    { type: 'dtmf', digit: '#' },
  ]);
});
