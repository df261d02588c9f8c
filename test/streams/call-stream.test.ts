// A call's stream and its bot, on a clock that the test controls: what a bot does wrong, and the
// result.

import { afterEach, describe, expect, onTestFinished, test } from 'vitest';
import { WebSocket } from 'ws';
import type { StreamReport, StreamSettings } from '../../src/calls/stream/stream.ts';
import { createAddressGuard } from '../../src/lib/address-guard.ts';
import { PlayoutPool } from '../../src/media/playout/playout-pool.ts';
import { PlayoutQueue } from '../../src/media/playout/playout-queue.ts';
import { createStreamStatistics } from '../../src/media/stream-port.ts';
import { CallStream } from '../../src/streams/bot-stream.ts';
import { streamIdsOf } from '../../src/streams/stream-ids.ts';
import { eventually } from '../support/eventually.ts';
import { ScriptedBot } from '../support/streams/scripted-bot.ts';
import { problemsOfStream } from '../support/streams/stream-messages.ts';

const open: AsyncDisposable[] = [];
const streams: CallStream[] = [];

afterEach(async () => {
  for (const stream of streams.splice(0)) stream.stop('call-ended');
  for (const one of open.splice(0)) await one[Symbol.asyncDispose]();
});

const frame = Uint8Array.from({ length: 160 }, (_, index) => index);

function createStream(
  bot: { readonly url: string },
  settings: Partial<StreamSettings> = {},
  guard = createAddressGuard(['127.0.0.0/8']),
) {
  const reports: StreamReport[] = [];
  const warnings: string[] = [];
  const statistics = createStreamStatistics();
  const noted: (string | number)[] = [];
  const queue = new PlayoutQueue(new PlayoutPool(16_000_000), (name) => stream.returnMark(name));
  const stream = new CallStream(
    {
      ...streamIdsOf({ appId: 'app-1', callId: 'call-1', request: {} }),
      ...{ url: bot.url, secret: 's3cret', connect: 'answered', customParameters: {}, ordinal: 0 },
      ...settings,
    },
    queue,
    {
      statistics,
      report: (report) => reports.push(report),
      warn: (warning) => warnings.push(warning),
      note: { mark: (name) => noted.push(name), clear: (droppedMs) => noted.push(droppedMs) },
      defect: (error) => {
        throw error;
      },
    },
    {
      guard,
      nowMs: () => performance.now(),
      wallClockMs: () => Date.now(),
    },
  );
  streams.push(stream);
  /** Plays 20 ms at a time and discards it. */
  const pass = (ms: number) => {
    for (let elapsedMs = 0; elapsedMs < ms; elapsedMs += 20) {
      queue.read(new Uint8Array(160), 0, 160);
      queue.returnMarks();
      stream.hear(frame);
      stream.tick();
    }
  };
  return { stream, queue, reports, warnings, statistics, pass, noted };
}

async function openStream() {
  const bot = await startBot();
  const call = createStream(bot);
  call.stream.answer();
  return { bot, ...call, connection: await bot.connection() };
}

function sendInParts(socket: WebSocket, text: string): void {
  const length = 1_000_000;
  for (let at = 0; at < text.length; at += length) {
    socket.send(text.slice(at, at + length), { fin: at + length >= text.length });
  }
}

async function startBot(): Promise<ScriptedBot> {
  const bot = await ScriptedBot.start();
  open.push(bot);
  return bot;
}

test('notes a bot’s marks and clears, with the length of the cleared audio', async () => {
  const { connection, noted } = await openStream();
  connection.say(frame);
  connection.mark('after');
  connection.clear();
  await eventually(() => noted.length === 2, 'both are noted');

  expect(noted).toEqual(['after', 20]);
});

describe('a faulty message of a bot', () => {
  test('is ignored and counted, causes one warning, and the call goes on', async () => {
    const { connection, queue, stream, warnings, reports, statistics } = await openStream();
    const { socket, streamSid } = connection;
    for (const text of ['{', '[]', 'null', '{"event":"media"}', '{"event":"mark","mark":{}}']) {
      socket.send(text);
    }
    for (const payload of [undefined, 7, '', '####']) {
      socket.send(JSON.stringify({ event: 'media', streamSid, media: { payload } }));
    }
    const payload = Buffer.from(frame).toString('base64');
    socket.send(JSON.stringify({ event: 'media', streamSid: 'MZ0', media: { payload } }));
    socket.send(Buffer.from(frame), { binary: true });
    connection.send({ event: 'later', later: {} });
    connection.say(frame);
    await eventually(() => queue.queuedBytes === 160, 'the correct message is queued');

    expect(statistics.messagesIgnored).toBe(12);
    expect(warnings).toEqual([...['unknown message', 'media without audio', 'binary frame']]);
    stream.stop('call-ended');
    expect(reports.at(-1)).toMatchObject({ kind: 'stopped', counts: { ignoredMessages: 12 } });
  });

  test('beyond the rate, or beyond ten minutes of audio, is dropped', async () => {
    const { connection, queue, warnings, statistics } = await openStream();
    for (let second = 0; second < 610; second += 10) connection.say(new Uint8Array(80_000));
    for (let count = 0; count < 5_000; count += 1) connection.send({ event: 'clear' });
    await eventually(() => statistics.messagesIgnored > 0, 'some are dropped');

    expect(queue.statistics.bytesDropped).toBe(80_000);
    expect(warnings).toEqual(['too much audio queued', 'more than 500 messages a second']);
  });

  test.each<[string, (socket: WebSocket, text: string) => void]>([
    ['in one frame', (socket, text) => socket.send(text)],
    ['in many frames', (socket, text) => sendInParts(socket, text)],
  ])(
    'of more than 8 MiB, %s, closes its connection, and the bot is reconnected',
    async (_how, send) => {
      const { bot, connection, queue, reports, pass } = await openStream();
      connection.say(frame);
      const payload = Buffer.alloc(6_500_000, 1).toString('base64');
      send(connection.socket, JSON.stringify({ event: 'media', media: { payload } }));
      await eventually(() => reports.some(({ kind }) => kind === 'broken'), 'it is broken');

      expect(reports.at(-1)).toEqual({
        kind: 'broken',
        reason: 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH',
      });
      await eventually(() => connection.closeCode !== undefined, 'the bot is closed');
      expect(connection.closeCode).toBe(1009);
      // Audio that came before it is still queued.
      expect(queue.queuedBytes).toBe(160);
      pass(1_000);
      expect((await bot.connection(1)).of('start')[0]?.start.customParameters['reconnect']).toBe(
        '1',
      );
    },
  );

  test('is accepted if it has exactly 8 MiB', async () => {
    const { connection, queue, warnings } = await openStream();
    const most = 8 * 1_024 * 1_024;
    const empty = JSON.stringify({ event: 'media', media: { payload: '' } });
    const payload = 'A'.repeat(most - empty.length);
    connection.socket.send(JSON.stringify({ event: 'media', media: { payload } }));
    await eventually(() => queue.statistics.bytesDropped > 0, 'it is queued');

    expect(queue.queuedBytes).toBe(600 * 8_000);
    expect(warnings).toEqual(['too much audio queued']);
  });

  test('with an impossible length ends the connection, and the bot is reconnected', async () => {
    const { bot, connection, reports, pass } = await openStream();
    const raw = (connection.socket as unknown as { _socket: import('node:net').Socket })._socket;
    raw.write(Buffer.from([0x81, 0x7f, 0, 1, 0, 0, 0, 0, 0, 0]));
    await eventually(() => reports.some(({ kind }) => kind === 'broken'), 'it is broken');

    expect(reports.at(-1)).toEqual({ kind: 'broken', reason: 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH' });
    pass(1_000);
    await bot.connection(1);
  });

  test('of half a frame before a broken connection leads to a reconnect', async () => {
    const { bot, connection, reports, pass } = await openStream();
    const raw = (connection.socket as unknown as { _socket: import('node:net').Socket })._socket;
    raw.write(Buffer.from([0x81, 0x7e, 0x10]));
    raw.end();
    await eventually(() => reports.some(({ kind }) => kind === 'broken'), 'it is broken');

    pass(1_000);
    expect((await bot.connection(1)).of('start')[0]?.start.customParameters['reconnect']).toBe('1');
  });
});

describe('a bot that does not read', () => {
  test('counts as gone if it also sends nothing for long', async () => {
    const { connection, reports, pass } = await openStream();
    (connection.socket as unknown as { _socket: import('node:net').Socket })._socket.pause();
    for (let seconds = 0; seconds < 41; seconds += 1) pass(1_000);

    expect(reports.at(-1)).toEqual({ kind: 'broken', reason: 'silent' });
  });

  test('keeps the call after ten seconds, and gets all that its connection could hold', async () => {
    const { bot, connection, queue, reports, pass } = await openStream();
    const raw = (connection.socket as unknown as { _socket: import('node:net').Socket })._socket;
    raw.pause();
    connection.say(new Uint8Array(16_000));
    await eventually(() => queue.queuedBytes > 0, 'it speaks');
    connection.mark('said');
    for (let seconds = 0; seconds < 10; seconds += 1) pass(1_000);
    raw.resume();
    await eventually(
      () => connection.of('media').length === 500,
      'it hears what was said meanwhile',
    );
    await eventually(() => connection.marks.length === 1, 'the mark comes back');

    const times = connection.of('media').map(({ media }) => Number(media.timestamp));
    expect(times).toEqual(times.map((_, index) => index * 20));
    expect(reports.map(({ kind }) => kind)).toEqual(['opened']);
    expect(bot.connections).toHaveLength(1);
  });

  test('keeps the call if it sends text but never a pong', async () => {
    const { connection, queue, reports, pass } = await openStream();
    connection.socket.pong = () => undefined;
    const warnings: string[] = [];
    const note = ({ name }: Error) => warnings.push(name);
    process.on('warning', note);
    onTestFinished(() => {
      process.off('warning', note);
    });
    for (let pings = 1; pings <= 12; pings += 1) {
      pass(11_000);
      connection.say(frame);
      await eventually(() => queue.queuedBytes > 0, 'it speaks');
    }

    expect(warnings).toEqual([]);
    expect(reports.map(({ kind }) => kind)).toEqual(['opened']);
  });

  test('keeps the call if it answers pings', async () => {
    const { reports, pass } = await openStream();
    for (let seconds = 0; seconds < 60; seconds += 1) {
      pass(1_000);
      if (seconds % 10 === 9) await new Promise((resolve) => setTimeout(resolve, 50));
    }

    expect(reports.map(({ kind }) => kind)).toEqual(['opened']);
  });
});

describe('the marks of a bot', () => {
  test('do not come back after it closes; its queued audio is played before it leaves', async () => {
    const { connection, queue, reports, pass } = await openStream();
    connection.say(new Uint8Array(8_000));
    connection.mark('end');
    connection.socket.close(1000);
    await eventually(() => connection.socket.readyState === WebSocket.CLOSED, 'it is closed');
    await eventually(() => {
      pass(20);
      return queue.queuedBytes < 8_000;
    }, 'it is played');
    expect(reports.map(({ kind }) => kind)).toEqual(['opened']);
    pass(1_000);

    expect(reports.at(-1)).toMatchObject({ kind: 'botLeft', counts: { playedMs: 1_000 } });
  });

  test('are dropped with its last audio after ten seconds', async () => {
    const { connection, queue, reports, pass } = await openStream();
    connection.say(new Uint8Array(160_000));
    await eventually(() => queue.queuedBytes > 0, 'it is queued');
    connection.socket.close(1000);
    await eventually(() => {
      pass(1_000);
      return reports.at(-1)?.kind === 'botLeft';
    }, 'it leaves');

    expect(queue.queuedBytes).toBeGreaterThan(0);
  });
});

describe('an event before the bot was connected', () => {
  test('is sent after start, in order', async () => {
    const bot = await startBot();
    const { stream } = createStream(bot);
    stream.sendDigit('1');
    stream.sendAmd({ event: 'amd_human_detected', reason: 'short-greeting', elapsedMs: 900 });
    stream.answer();
    const connection = await bot.connection();
    await eventually(() => connection.texts.length === 4, 'all messages are received');

    expect(connection.texts.map((text) => (JSON.parse(text) as { event: string }).event)).toEqual([
      ...['connected', 'start', 'dtmf', 'amd'],
    ]);
    expect(connection.of('start')[0]?.start.customParameters['amd']).toBe('amd_human_detected');
    expect(problemsOfStream(connection.texts, { isOver: false })).toEqual([]);
  });
});

describe('a bot that cannot be reached', () => {
  test('is given up five seconds after the answer', async () => {
    const bot = await startBot();
    const { url } = bot;
    await bot.kill();
    const { stream, reports, pass } = createStream({ url });
    stream.answer();
    for (let tries = 1; reports.at(-1)?.kind !== 'lost'; tries += 1) {
      await eventually(() => reports.length >= tries, 'a try fails');
      pass(2_000);
    }

    // Tries follow after half a second and after one more second. The next one would be too late.
    expect(reports.map(({ kind }) => kind)).toEqual(['broken', 'broken', 'lost']);
    pass(60_000);
    expect(reports).toHaveLength(3);
  });

  test('is never connected to if its address is internal', () => {
    const { stream, reports } = createStream({ url: 'ws://10.0.0.1/audio' });
    stream.prepare();
    stream.answer();

    expect(reports).toEqual([{ kind: 'lost', reason: 'address-not-allowed' }]);
  });

  test('is never connected to if its name resolves to an internal address', async () => {
    const bot = await startBot();
    const guard = createAddressGuard([], async () => [{ address: '127.0.0.1', family: 4 }]);
    const { stream, reports } = createStream({ url: `ws://bot.example:${bot.port}/` }, {}, guard);
    stream.prepare();
    stream.answer();
    await eventually(() => reports.length > 0, 'the loss is reported');

    expect(reports.at(-1)).toEqual({ kind: 'lost', reason: 'address-not-allowed' });
    expect(bot.tcpConnections).toBe(0);
  });

  test('is connected to at the address to which its name resolved when it was checked', async () => {
    const bot = await startBot();
    let asked = 0;
    const guard = createAddressGuard(['127.0.0.0/8'], async () => {
      asked += 1;
      return [{ address: '127.0.0.1', family: 4 }];
    });
    const { stream } = createStream({ url: `ws://bot.example:${bot.port}/audio` }, {}, guard);
    stream.answer();
    const connection = await bot.connection();

    expect(connection.request.headers.host).toBe(`bot.example:${bot.port}`);
    expect(asked).toBe(1);
  });
});
