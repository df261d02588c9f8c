// Bots that flood or stand still, and a receiver of notifications that is dead: what one call suffers is not another's.

import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { freeUdpPort } from '../support/free-port.ts';
import { type StreamRig, speech, startStreamRig } from '../support/streams/stream-rig.ts';

let rig: StreamRig;

beforeAll(async () => {
  // A bound that one greedy bot reaches.
  rig = await startStreamRig({ STREAM_BUFFER_MB: '1' });
});
afterEach(() => rig.reset());
afterAll(() => rig.close());

async function streamedCall(more: Readonly<Record<string, unknown>> = {}) {
  const bot = await rig.startBot();
  const { callee, callId } = await rig.call({ url: bot.url }, more);
  await callee.answer();
  return { bot, callee, callId, connection: await bot.connection() };
}

test('a bot that sends 100 MB keeps its call, and takes nothing from another', async () => {
  const greedy = await streamedCall();
  const modest = await streamedCall();
  const megabyte = speech(1_000_000);
  for (let count = 0; count < 100; count += 1) greedy.connection.say(megabyte);
  greedy.connection.mark('last');
  const said = speech(24_000, 3);
  modest.connection.say(said);
  modest.connection.mark('said');
  await eventually(() => modest.connection.marks.includes('said'), 'the other is played');
  expect(modest.callee.heard.includes(said)).toBe(true);

  greedy.connection.clear();
  await eventually(() => greedy.connection.marks.includes('last'), 'its marks return');
  greedy.connection.say(speech(800, 7));
  await greedy.callee.untilHeard((heard) => heard.includes(speech(800, 7)), 'it is heard again');
  greedy.callee.hangUp();
  await rig.endOf(greedy.callId);
  const stopped = rig.eventsOf(greedy.callId).find(({ type }) => type === 'stream-stopped');
  expect(Number(stopped?.data['droppedMs'])).toBeGreaterThan(12_000_000);
});

test('a bot that stands still for a while has its call when it goes on', async () => {
  const { bot, callee, connection } = await streamedCall();
  const said = speech(4_000);
  connection.say(said);
  connection.socket.pause();
  const { length } = callee.packets;
  await eventually(() => callee.packets.length > length + 100, 'the phone hears on');
  connection.socket.resume();
  connection.mark('on');
  await eventually(() => connection.marks.includes('on'), 'it goes on');

  expect(callee.heard.includes(said)).toBe(true);
  expect(bot.connections).toHaveLength(1);
  // Two seconds fit into the buffers on the way: nothing is missing.
  const times = connection.of('media').map(({ media }) => Number(media.timestamp));
  expect(times).toEqual(times.map((_, index) => index * 20));
});

test('twenty bots talk while nobody takes the notifications of their calls', async () => {
  const notifyurl = `http://127.0.0.1:${await freeUdpPort()}/`;
  const calls = await Promise.all(Array.from({ length: 20 }, () => streamedCall({ notifyurl })));
  for (const [index, { connection }] of calls.entries()) {
    connection.say(speech(1_600, index));
    connection.mark('said');
  }
  for (const { connection } of calls) {
    await eventually(() => connection.marks.includes('said'), 'it is played');
  }

  for (const [index, { callee }] of calls.entries()) {
    expect(callee.heard.includes(speech(1_600, index))).toBe(true);
  }
});
