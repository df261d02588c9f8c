// The whole gateway between a bot's WebSocket and a phone's RTP.

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { silenceByte } from '../../src/media/g711.ts';
import { eventually } from '../support/eventually.ts';
import { type Laptop, startLaptop } from '../support/laptop.ts';
import { ScriptedBot, type ScriptedBotOptions } from '../support/streams/scripted-bot.ts';
import { StreamCallee } from '../support/streams/stream-callee.ts';
import { problemsOfStream } from '../support/streams/stream-messages.ts';

let laptop: Laptop;
const open: AsyncDisposable[] = [];

beforeAll(async () => {
  laptop = await startLaptop();
});

afterEach(async () => {
  for (const one of open.splice(0)) await one[Symbol.asyncDispose]();
});

afterAll(() => laptop.close());

async function startBot(options?: ScriptedBotOptions): Promise<ScriptedBot> {
  const bot = await ScriptedBot.start(options);
  open.push(bot);
  return bot;
}

async function call(stream: object | null, more: Record<string, unknown> = {}) {
  const { callee, placed } = await StreamCallee.called((target) =>
    laptop.dial(target, { stream, machineDetection: 'disabled', ...more }),
  );
  open.push(callee);
  return { callee, callId: placed.callId };
}

const factsOf = (callId: string) => laptop.facts.filter((fact) => fact.callId === callId);

async function endOf(callId: string) {
  await eventually(
    () => factsOf(callId).some(({ type }) => type === 'completed' || type === 'failed'),
    'the call ends',
  );
  return factsOf(callId).at(-1)?.data;
}

/** Audio in which every frame is another, without the byte of silence. */
function speech(length: number): Buffer {
  return Buffer.from(Uint8Array.from({ length }, (_, index) => (index * 7 + (index >> 8)) % 0x7f));
}

const isAudio = (byte: number) => byte !== silenceByte.PCMU;

describe('a bot that talks', () => {
  test('is heard to the byte, from the first packets of the call, and its marks return', async () => {
    const bot = await startBot();
    const { callee, callId } = await call({ url: `${bot.url}?key=s3cret`, parameters: { a: 'b' } });
    callee.ring();
    await callee.answer();
    const connection = await bot.connection();
    const said = speech(1_234);
    connection.say(said.subarray(0, 13));
    connection.say(said.subarray(13));
    connection.mark('said');
    await eventually(() => connection.marks.includes('said'), 'the mark returns');

    const heard = callee.heard;
    const from = heard.findIndex(isAudio);
    expect(heard.subarray(from, from + said.length).equals(said)).toBe(true);
    callee.hangUp();
    expect(await endOf(callId)).toMatchObject({ reasonCode: 'Caller-disconnected' });
    await eventually(() => connection.closeCode !== undefined, 'the stream is closed');
    expect(problemsOfStream(connection.texts, { isOver: true })).toEqual([]);
    expect(factsOf(callId).map(({ type }) => type)).toEqual([
      ...['queued', 'dialing', 'ringing', 'answered'],
      ...['stream-started', 'stream-stopped', 'completed'],
    ]);
  });
});
