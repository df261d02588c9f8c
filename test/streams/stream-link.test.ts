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
      onPong: () => undefined,
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
