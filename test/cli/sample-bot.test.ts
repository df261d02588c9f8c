// The sample bot, driven as a gateway would: its messages are the wire format's, and its conversation is one.

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
  // Its own: a bot that is closed may still tell of the end.
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
    // Its clock is the audio.
    speed: 20,
  });
}

const typesOf = (all: readonly BotEvent[]) => all.map(({ type }) => type);
const saidLines = () => events.flatMap((event) => (event.type === 'said' ? [event.line] : []));
const untilSaid = (line: string) => eventually(() => saidLines().includes(line), `said ${line}`);
const marksOf = (gateway: FakeGateway) => gateway.marks.map(({ name }) => name);

/** What the far end heard from one time to another is silence alone. */
const isSilent = (gateway: FakeGateway, fromMs: number, toMs: number) =>
  gateway.heard
    .slice(fromMs / 20, toMs / 20)
    .every((frame) => frame.every((byte) => byte === 0xff));

describe('a conversation with the sample bot', () => {
  test('it waits for the first word, greets, repeats, says goodbye and hangs up', async () => {
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

  test('what it repeats is what it heard, to the byte', async () => {
    const gateway = await connect({ reconnect: '1' });
    gateway.speak(recording('talker-answer'));
    await untilSaid('you-said');
    gateway.stop();

    const played = Buffer.concat(gateway.heard);
    // The first milliseconds are before the voice was noticed for sure.
    expect(played.includes(Buffer.from(recording('talker-answer').subarray(1_600)))).toBe(true);
  });

  test('the person says no word: it greets all the same, and says goodbye', async () => {
    const gateway = await connect();
    await eventually(() => gateway.closeCode !== undefined, 'the bot hangs up');

    expect(saidLines()).toEqual(['greeting', 'goodbye']);
    expect(gateway.marks[0]?.atMs).toBeGreaterThanOrEqual(2_000 + lengthMs('bot-greeting'));
  });

  test('interrupted, it falls silent at once', async () => {
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
    // It lets the other finish first, 700 ms of pause included.
    expect(isSilent(gateway, clearedAtMs, clearedAtMs + 700)).toBe(true);
    expect(typesOf(events)).toEqual(['started', 'heard', 'interrupted', 'heard', 'said']);
    gateway.stop();
    await eventually(() => events.at(-1)?.type === 'ended', 'it saw the end');
    expect(events.at(-1)).toMatchObject({ interruptions: 1, code: 1000 });
  });

  test('a machine: it falls silent, and leaves its message after the beep', async () => {
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

  test('the key # ends it', async () => {
    const gateway = await connect();
    gateway.press('1');
    gateway.press('#');
    await eventually(() => gateway.closeCode !== undefined, 'the bot hangs up');

    expect(typesOf(events)).toEqual(['started', 'dtmf', 'dtmf', 'said', 'ended']);
  });

  test('after a break of the connection it does not greet again', async () => {
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
  // The goodbye is a turn that did not end before the call did.
  expect(talker.summary).toMatchObject({ turns: 3, answers: 1 });
  expect(talker.summary.silencedAfterMs).toBeLessThan(1_000);
});

test('what is no message of a gateway changes nothing', async () => {
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

describe('who may connect', () => {
  test.each([
    ['without a signature', undefined],
    ['with another secret', 'ss_other'],
  ])('no person: %s', async (_name, other) => {
    const signed = other === undefined ? {} : { streamSecret: other };

    await expect(FakeGateway.connect({ url: bot.url, ...signed })).rejects.toThrow('401');
    expect(typesOf(events)).toEqual(['refused']);
  });
});

test('offhook bot is it as a command', async () => {
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
