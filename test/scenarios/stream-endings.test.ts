// How calls with a stream end. The bots are absent, go away, come back, flood or stand still, or no
// receiver accepts the notifications of their calls.

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { readDevApp } from '../support/dialer-client.ts';
import { eventually } from '../support/eventually.ts';
import { freeUdpPort } from '../support/free-port.ts';
import type { ScriptedBotOptions } from '../support/streams/scripted-bot.ts';
import { problemsOfStream } from '../support/streams/stream-messages.ts';
import { type StreamRig, speech, startStreamRig } from '../support/streams/stream-rig.ts';

let rig: StreamRig;

beforeAll(async () => {
  // A single greedy bot reaches this limit.
  rig = await startStreamRig({ STREAM_BUFFER_MB: '1' });
});
afterEach(() => rig.reset());
afterAll(() => rig.close());

async function streamedCall(
  more: Readonly<Record<string, unknown>> = {},
  options: ScriptedBotOptions = {},
) {
  const bot = await rig.startBot(options);
  const { callee, callId } = await rig.call({ url: bot.url }, more);
  await callee.answer();
  return { bot, callee, callId, connection: await bot.connection() };
}

const hungUpByBot = { outcome: 'completed', reason: '200 OK', reasonCode: 'Bot-disconnected' };
const botFailure = {
  ...{ outcome: 'bot-failure', reason: 'Bot unreachable', reasonCode: 'Bot-disconnected' },
};

describe('a bot that closes its stream', () => {
  test.each([1000, 1005])('with %i ends the call after all its audio was played', async (code) => {
    const { callee, callId, connection } = await streamedCall();
    const goodbye = speech(4_000);
    connection.say(goodbye);
    if (code === 1005) connection.socket.close();
    else connection.socket.close(code);
    await callee.isHungUp();

    await callee.untilHeard((heard) => heard.includes(goodbye), 'the whole goodbye is heard');
    expect(await rig.endOf(callId)).toMatchObject(hungUpByBot);
    const stopped = rig.eventsOf(callId).find(({ type }) => type === 'stream-stopped');
    expect(stopped?.data).toMatchObject({ reason: 'bot-closed', playedMs: 500 });
  });

  test.each([1001, 1012])(
    'with %i is called again, and its audio continues to play',
    async (code) => {
      const { bot, callee, callId, connection } = await streamedCall();
      const said = speech(16_000);
      connection.say(said);
      connection.mark('old');
      connection.socket.close(code);
      const again = await bot.connection(1);
      const { start } = again.of('start')[0] ?? {};

      expect(start?.customParameters['reconnect']).toBe('1');
      expect(start?.callSid).toBe(connection.of('start')[0]?.start.callSid);
      expect(again.streamSid).toBe(connection.streamSid);
      again.mark('new');
      await eventually(() => again.marks.length > 0, 'the new mark returns');
      expect(again.marks).toEqual(['new']);
      await callee.untilHeard((heard) => heard.includes(said), 'all that the bot said is heard');
      expect(again.of('media')[0]?.media).toMatchObject({ chunk: '1', timestamp: '0' });
      expect(problemsOfStream(again.texts, { isOver: false })).toEqual([]);
      callee.hangUp();
      await rig.endOf(callId);
      expect(rig.typesOf(callId).filter((type) => type.startsWith('stream'))).toEqual([
        ...['stream-started', 'stream-failed', 'stream-started', 'stream-stopped'],
      ]);
    },
  );
});

describe('a bot that cannot be reached', () => {
  test('ends the call, so that the person is not left in silence', async () => {
    const { callee, callId } = await rig.call({ url: `ws://127.0.0.1:${await freeUdpPort()}/` });
    await callee.answer();
    await callee.isHungUp();

    expect(await rig.endOf(callId)).toMatchObject(botFailure);
    const failed = rig.eventsOf(callId).filter(({ type }) => type === 'stream-failed');
    expect(failed.at(-1)?.data).toEqual({ reason: 'ECONNREFUSED', willRetry: false });
    expect(failed.length).toBeGreaterThan(1);
  });

  test('gets the call if it comes within five seconds', async () => {
    const port = await freeUdpPort();
    const { callee, callId } = await rig.call({ url: `ws://127.0.0.1:${port}/audio` });
    await callee.answer();
    await eventually(() => rig.typesOf(callId).includes('stream-failed'), 'an attempt has failed');
    const bot = await rig.startBot({ port });

    await bot.connection();
    expect(callee.isBeingHungUp).toBe(false);
  });

  test('because it refuses is called only once', async () => {
    let asked = 0;
    const bot = await rig.startBot({
      refuseWith: () => {
        asked += 1;
        return 403;
      },
    });
    const { callee, callId } = await rig.call({ url: bot.url });
    await callee.answer();
    await callee.isHungUp();

    expect(await rig.endOf(callId)).toMatchObject(botFailure);
    expect(asked).toBe(1);
    const failed = rig.eventsOf(callId).filter(({ type }) => type === 'stream-failed');
    expect(failed.map(({ data }) => data)).toEqual([{ reason: 'status-403', willRetry: false }]);
  });

  test('because its address is private is a 400', async () => {
    const asked = await rig.laptop.gateway.dialer.post({
      ...{ target: 'tel:+12025550100', stream: { url: 'ws://10.0.0.1/' } },
    });

    expect(asked.status).toBe(400);
    expect(asked.body).toMatchObject({ errors: [{ path: 'stream.url' }] });
  });
});

describe('a bot whose process is killed', () => {
  test('is called again at its address, and the call continues', async () => {
    const port = await freeUdpPort();
    const { bot, callee, callId } = await streamedCall({}, { port });
    await bot.kill();
    await eventually(() => rig.typesOf(callId).includes('stream-failed'), 'the break is published');
    const again = await rig.startBot({ port });

    const connection = await again.connection();
    connection.say(speech(800));
    await callee.untilHeard((heard) => heard.includes(speech(800)), 'the bot is heard again');
    expect(callee.isBeingHungUp).toBe(false);
  });
});

describe('hanging up by the REST form of bots', () => {
  async function hangUp(
    { accountSid, callSid }: { accountSid: string; callSid: string },
    { secret, body = 'Status=completed' }: { secret: string; body?: string },
  ) {
    const { httpUrl } = rig.laptop.gateway.runtime;
    const basic = Buffer.from(`${accountSid}:${secret}`).toString('base64');
    const response = await fetch(
      `${httpUrl}/2010-04-01/Accounts/${accountSid}/Calls/${callSid}.json`,
      {
        method: 'POST',
        headers: {
          authorization: `Basic ${basic}`,
          'content-type': 'application/x-www-form-urlencoded',
        },
        body,
      },
    );
    return { status: response.status, body: (await response.json()) as object };
  }

  test('requires the stream secret of the app, ends the call, and is a 404 after the end', async () => {
    const { callee, callId, connection } = await streamedCall();
    const { start } = connection.of('start')[0] ?? {};
    if (start === undefined) throw new Error('no start');
    const { streamSecret: secret = '' } = await readDevApp(rig.laptop.gateway.dataDir);

    expect(await hangUp(start, { secret: 'guessed' })).toMatchObject({ status: 401 });
    expect(await hangUp(start, { secret, body: 'Status=completed&Url=x' })).toMatchObject({
      status: 400,
      body: { message: expect.stringContaining('Url') },
    });
    expect(await hangUp({ ...start, callSid: `CA${'0'.repeat(32)}` }, { secret })).toMatchObject({
      status: 401,
    });
    expect(await hangUp(start, { secret })).toMatchObject({
      status: 200,
      body: { sid: start.callSid, status: 'completed' },
    });
    await callee.isHungUp();
    expect(await rig.endOf(callId)).toMatchObject(hungUpByBot);
    await eventually(
      async () => (await hangUp(start, { secret })).status === 404,
      'the call has ended',
    );
    expect(await hangUp(start, { secret })).toMatchObject({ body: { code: 20_404 } });
  });
});

describe('a fault in one call does not affect another call', () => {
  test('a bot that sends 100 MB keeps its call, and does not disturb another call', async () => {
    const greedy = await streamedCall();
    const modest = await streamedCall();
    const megabyte = speech(1_000_000);
    for (let count = 0; count < 100; count += 1) greedy.connection.say(megabyte);
    greedy.connection.mark('last');
    const said = speech(24_000, 3);
    modest.connection.say(said);
    modest.connection.mark('said');
    await eventually(
      () => modest.connection.marks.includes('said'),
      'the audio of the other bot is played',
    );
    await modest.callee.untilHeard(
      (heard) => heard.includes(said),
      'all that the bot said is heard',
    );

    greedy.connection.clear();
    await eventually(
      () => greedy.connection.marks.includes('last'),
      'the marks of the greedy bot return',
    );
    greedy.connection.say(speech(800, 7));
    await greedy.callee.untilHeard(
      (heard) => heard.includes(speech(800, 7)),
      'the bot is heard again',
    );
    greedy.callee.hangUp();
    await rig.endOf(greedy.callId);
    const stopped = rig.eventsOf(greedy.callId).find(({ type }) => type === 'stream-stopped');
    expect(Number(stopped?.data['droppedMs'])).toBeGreaterThan(12_000_000);
  });

  test('a bot that stands still for a while keeps its call', async () => {
    const { bot, callee, connection } = await streamedCall();
    const said = speech(4_000);
    connection.say(said);
    connection.socket.pause();
    const { length } = callee.packets;
    await eventually(() => callee.packets.length > length + 100, 'the phone still receives audio');
    connection.socket.resume();
    connection.mark('on');
    await eventually(() => connection.marks.includes('on'), 'the bot continues');

    await callee.untilHeard((heard) => heard.includes(said), 'all that the bot said is heard');
    expect(bot.connections).toHaveLength(1);
    // Two seconds of audio fit into the buffers on the way, so nothing is missing.
    const times = connection.of('media').map(({ media }) => Number(media.timestamp));
    expect(times).toEqual(times.map((_, index) => index * 20));
  });

  test('twenty bots talk while no receiver accepts the notifications of their calls', async () => {
    const notifyurl = `http://127.0.0.1:${await freeUdpPort()}/`;
    const calls = await Promise.all(Array.from({ length: 20 }, () => streamedCall({ notifyurl })));
    for (const [index, { connection }] of calls.entries()) {
      connection.say(speech(1_600, index));
      connection.mark('said');
    }
    for (const { connection } of calls) {
      await eventually(() => connection.marks.includes('said'), 'the audio of each bot is played');
    }

    for (const [index, { callee }] of calls.entries()) {
      await callee.untilHeard(
        (heard) => heard.includes(speech(1_600, index)),
        'all that the bot said is heard',
      );
    }
  });
});

// This must be the last test: it ends the gateway of this file.
test('a gateway that shuts down closes streams with their calls', async () => {
  const { callee, connection } = await streamedCall();
  const closing = rig.laptop.gateway.terminate();
  await callee.isHungUp();
  await closing;

  await eventually(() => connection.closeCode !== undefined, 'the stream is closed');
  expect(problemsOfStream(connection.texts, { isOver: true })).toEqual([]);
});
