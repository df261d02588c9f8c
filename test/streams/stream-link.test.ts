import { expect, test } from 'vitest';
import { createAddressGuard } from '../../src/lib/address-guard.ts';
import { openTransport } from '../../src/streams/bot-transport.ts';
import { StreamLink } from '../../src/streams/stream-link.ts';
import { eventually } from '../support/eventually.ts';
import { ScriptedBot } from '../support/streams/scripted-bot.ts';

test('reports a defect that a message exposes, and does not end the thread', async () => {
  await using bot = await ScriptedBot.start();
  const transport = openTransport(new URL(bot.url), createAddressGuard(['127.0.0.0/8']));
  if (transport === undefined) throw new Error('loopback is allowed');
  const defects: unknown[] = [];
  const link = new StreamLink(
    { url: bot.url, secret: 's3cret', timestampS: 0, transport },
    {
      onOpen: () => undefined,
      onText: (text) => {
        throw new Error(text);
      },
      onBinary: () => undefined,
      onEnd: () => undefined,
      onDefect: (error) => defects.push(error),
    },
  );
  await eventually(() => bot.connections.length === 1, 'it is connected');
  bot.connections[0]?.socket.send('a defect');
  await eventually(() => defects.length === 1, 'the defect is reported');

  expect(defects).toEqual([new Error('a defect')]);
  link.close();
});

test('sends texts of any length in order, while the bot reads and while it does not', async () => {
  await using bot = await ScriptedBot.start();
  const transport = openTransport(new URL(bot.url), createAddressGuard(['127.0.0.0/8']));
  if (transport === undefined) throw new Error('loopback is allowed');
  let isOpen = false;
  const link = new StreamLink(
    { url: bot.url, secret: 's3cret', timestampS: 0, transport },
    {
      onOpen: () => {
        isOpen = true;
      },
      onText: () => undefined,
      onBinary: () => undefined,
      onEnd: () => undefined,
      onDefect: () => undefined,
    },
  );
  await eventually(() => isOpen, 'it is connected');
  const connection = bot.connections[0];
  const texts = [2, 124, 125, 126, 127, 128, 129, 390, 499, 500, 501, 65_535, 65_536].flatMap(
    (length) => ['a', 'é', '世'].map((character) => `"${character.repeat(length - 2)}"`),
  );
  for (const text of texts) link.send(text);
  await eventually(() => connection?.texts.length === texts.length, 'the texts have arrived');
  // When the socket takes no more, it keeps the memory of what it hasn't sent.
  connection?.socket.pause();
  const frames: string[] = [];
  while (transport.writableLength < 100_000) {
    frames.push(`"${frames.length} "`.padEnd(400));
    link.send(frames.at(-1) ?? '');
  }
  connection?.socket.resume();

  const all = [...texts, ...frames];
  await eventually(() => connection?.texts.length === all.length, 'all have arrived');
  expect(connection?.texts).toEqual(all);
  link.close();
});
