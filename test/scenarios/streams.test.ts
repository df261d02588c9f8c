// The whole gateway between a bot's WebSocket and a phone's RTP: what each side hears, to the
// sample.

import { createHmac } from 'node:crypto';
import { afterEach, describe, expect, test } from 'vitest';
import { decodeTable, mulawToAlaw, silenceByte } from '../../src/media/g711.ts';
import { readDevApp } from '../support/dialer-client.ts';
import { eventually } from '../support/eventually.ts';
import { forSuite } from '../support/opened.ts';
import { speakUntilBotHears } from '../support/streams/spoken-to-bot.ts';
import type { HeardPacket } from '../support/streams/stream-callee.ts';
import { problemsOfStream } from '../support/streams/stream-messages.ts';
import { speech, startStreamRig } from '../support/streams/stream-rig.ts';

const rig = forSuite(startStreamRig);
afterEach(() => rig.reset());

async function answeredCall(more: Readonly<Record<string, unknown>> = {}) {
  const bot = await rig.startBot();
  const { callee, callId } = await rig.call({ url: bot.url }, more);
  await callee.answer();
  return { bot, callee, callId, connection: await bot.connection() };
}

describe('what a bot says', () => {
  test('is heard to the byte, in chunks of any size, and its marks return afterwards', async () => {
    const { callee, callId, connection } = await answeredCall();
    const said = speech(3_211);
    let from = 0;
    connection.atOnce(() => {
      for (const size of [1, 13, 160, 1_037, 2_000]) {
        connection.say(said.subarray(from, from + size));
        from += size;
        connection.mark(`after ${from}`);
      }
    });
    await eventually(() => connection.marks.length === 5, 'the marks return');

    expect(connection.marks).toEqual([
      'after 1',
      'after 14',
      'after 174',
      'after 1211',
      'after 3211',
    ]);
    await callee.untilHeard((heard) => heard.includes(said), 'the bot is heard');
    callee.hangUp();
    expect(await rig.endOf(callId)).toMatchObject({ reasonCode: 'Caller-disconnected' });
    await eventually(() => connection.closeCode !== undefined, 'the stream is closed');
    expect(connection.closeCode).toBe(1000);
    expect(problemsOfStream(connection.texts, { isOver: true })).toEqual([]);
    expect(rig.typesOf(callId)).toEqual([
      ...['queued', 'dialing', 'answered', 'stream-started', 'stream-stopped', 'completed'],
    ]);
    expect(rig.eventsOf(callId).at(-2)?.data).toMatchObject({
      ...{ reason: 'call-ended', connections: 1, droppedMs: 0, unheardMs: 0, ignoredMessages: 0 },
      playedMs: Math.round(said.length / 8),
    });
  });

  test('is sent from the 200 OK on, before the phone has sent anything', async () => {
    const greeting = speech(800);
    const bot = await rig.startBot({
      onConnection: (connection) => {
        connection.onMessage = ({ event }) => {
          if (event === 'start') connection.say(greeting);
        };
      },
    });
    const { callee } = await rig.call({ url: bot.url });
    callee.ring();
    await eventually(() => bot.tcpConnections === 1, 'the bot is connected while the phone rings');
    expect(bot.connections).toEqual([]);
    await callee.answer();

    await callee.untilHeard((heard) => heard.includes(greeting), 'the greeting is heard');
    expect(bot.tcpConnections).toBe(1);
  });

  test('is heard in the phone’s codec, also after a re-INVITE changes it', async () => {
    const bot = await rig.startBot();
    const { callee } = await rig.call({ url: bot.url });
    await callee.answer('PCMA');
    const connection = await bot.connection();
    const first = speech(1_600);
    connection.say(first);
    const inAlaw = Buffer.from(first.map((byte) => mulawToAlaw[byte] ?? 0));
    await callee.untilHeard((heard) => heard.includes(inAlaw), 'the bot is heard in A-law');

    await callee.reoffer('sendrecv', 'PCMU');
    const second = speech(1_600, 5);
    connection.say(second);
    await callee.untilHeard((heard) => heard.includes(second), 'the bot is heard in µ-law');
    expect(callee.packets[0]).toMatchObject({ payloadType: 8, marker: true });
    expect(callee.packets.at(-1)).toMatchObject({ payloadType: 0 });
  });

  test('leaves no gap in RTP, whatever is said and cleared: one marker, and each sequence number once', async () => {
    const lateBefore = await rig.lateTicks();
    const { callee, connection } = await answeredCall();
    for (let count = 0; count < 4; count += 1) {
      connection.say(speech(40_000, count));
      connection.mark(`part ${count}`);
    }
    await callee.untilHeard((heard) => heard.includes(speech(160)), 'the bot begins to be heard');
    connection.clear();
    await eventually(() => connection.marks.length === 4, 'all marks return');
    connection.say(speech(320, 9));
    await callee.untilHeard(
      (heard) => heard.includes(speech(320, 9)),
      'the bot is heard after the clear',
    );

    const packets = [...callee.packets];
    const late = (await rig.lateTicks()) - lateBefore;
    expectStretches(packets, 1, late);
    const first = packets[0];
    expect(packets.map(({ sequence }) => sequence)).toEqual(
      packets.map((_, index) => ((first?.sequence ?? 0) + index) & 0xffff),
    );
    const lasted = ((packets.at(-1)?.timestamp ?? 0) - (first?.timestamp ?? 0)) >>> 0;
    expect(lasted / 160 + 1 - packets.length).toBeLessThanOrEqual(late);
    // Cleared audio is never heard. The phone hears at most the first two of the four parts, which
    // last five seconds each.
    expect(callee.heard.includes(speech(160, 3))).toBe(false);
  });

  test('follows the phone to another address, and audio said on hold is not heard later', async () => {
    const lateBefore = await rig.lateTicks();
    const { callee, connection } = await answeredCall();
    connection.say(speech(800));
    await callee.untilHeard((heard) => heard.includes(speech(800)), 'the bot is heard');
    await callee.move();
    await callee.reoffer('sendrecv');
    connection.say(speech(800, 1));
    await callee.untilHeard(
      (heard) => heard.includes(speech(800, 1)),
      'the phone hears audio at its new port',
    );

    await callee.reoffer('sendonly');
    // After another round trip, everything that was on its way has arrived.
    connection.say(speech(160, 4));
    connection.mark('held');
    await eventually(() => connection.marks.includes('held'), 'the hold has begun');
    const before = callee.packets.length;
    connection.say(speech(1_600, 2));
    connection.mark('on hold');
    await eventually(
      () => connection.marks.includes('on hold'),
      'the audio said on hold has ended',
    );
    expect(callee.packets.length).toBeLessThanOrEqual(before + 2);
    await callee.reoffer('sendrecv');
    connection.say(speech(800, 3));
    await callee.untilHeard(
      (heard) => heard.includes(speech(800, 3)),
      'the phone hears audio after the hold',
    );

    expect(callee.heard.includes(speech(1_600, 2))).toBe(false);
    const packets = [...callee.packets];
    expectStretches(packets, 2, (await rig.lateTicks()) - lateBefore);
  });
});

/**
 * Expects markers as in RFC 3551, 4.1: on the first packet, and on the first packet after a time
 * without packets. Within a stretch there is no such time, unless the gateway stood still.
 */
function expectStretches(packets: readonly HeardPacket[], stretches: number, late: number): void {
  const begins = packets.filter(({ marker }) => marker);
  expect(begins[0]).toBe(packets[0]);
  expect(begins.length).toBeGreaterThanOrEqual(stretches);
  expect(begins.length).toBeLessThanOrEqual(stretches + late);
  for (const [index, { marker, sequence, timestamp }] of packets.entries()) {
    const before = packets[index - 1];
    // A packet on its way to another address is not heard.
    if (before === undefined || sequence !== ((before.sequence + 1) & 0xffff)) continue;
    expect((timestamp - before.timestamp) >>> 0 === 160).toBe(!marker);
  }
}

describe('what a bot receives', () => {
  test('is signed, and begins with the call and its parameters', async () => {
    const bot = await rig.startBot();
    const url = `${bot.url}?key=s3cret`;
    const { callee, callId } = await rig.call(
      { url, parameters: { campaign: 'spring', botId: 'mine' } },
      { metadata: { customer: '4711', more: { deep: true } } },
    );
    await callee.answer();
    const connection = await bot.connection();
    const { headers } = connection.request;
    const { streamSecret = '' } = await readDevApp(rig.laptop.gateway.dataDir);
    const hmac = (algorithm: string, text: string) =>
      createHmac(algorithm, streamSecret).update(text);

    expect(connection.request.url).toBe('/audio?key=s3cret');
    expect(headers.origin).toBeUndefined();
    expect(headers['sec-websocket-extensions']).toBeUndefined();
    expect(headers['x-twilio-signature']).toBe(hmac('sha1', url).digest('base64'));
    const [, at = '', own] = /^t=(\d+),v1=(\w+)$/.exec(String(headers['gateway-signature'])) ?? [];
    expect(own).toBe(hmac('sha256', `${at}./audio?key=s3cret`).digest('hex'));
    expect(connection.of('start')[0]?.start.customParameters).toMatchObject({
      ...{ customer: '4711', more: '{"deep":true}', campaign: 'spring' },
      ...{ callId, botId: 'bot-1', from_number: '15559876543' },
      to_number: expect.stringMatching(/^sip:callee@127\.0\.0\.1:\d+$/),
    });
    expect(rig.laptop.gateway.output()).not.toContain('s3cret');
  });

  test('is the phone’s audio to the sample, and silence while the phone says nothing', async () => {
    const { callee, connection } = await answeredCall();
    const said = speech(160 * 20);
    await speakUntilBotHears(callee, connection, said);
    const { length } = connection.of('media');
    await eventually(() => connection.of('media').length > length + 30, 'the clock continues');

    const silence = new Set(connection.heard.subarray(-160));
    expect(silence).toEqual(new Set([silenceByte.PCMU]));
    expect(problemsOfStream(connection.texts, { isOver: false })).toEqual([]);
  });

  test('is also the audio of a phone with A-law, within a step of µ-law', async () => {
    const bot = await rig.startBot();
    const { callee } = await rig.call({ url: bot.url });
    await callee.answer('PCMA');
    const connection = await bot.connection();
    const said = Buffer.from(Uint8Array.from({ length: 160 * 20 }, (_, index) => index % 251));
    await callee.speak(said, 8);
    const heardSamples = () =>
      [...connection.heard].filter((byte) => byte !== silenceByte.PCMU).length;
    await eventually(() => heardSamples() > 1_500, 'the bot hears it');

    const loudest = Math.max(...[...connection.heard].map((byte) => decodeTable.PCMU[byte] ?? 0));
    const saidLoudest = Math.max(...[...said].map((byte) => decodeTable.PCMA[byte] ?? 0));
    expect(Math.abs(loudest - saidLoudest)).toBeLessThan(1_024);
  });

  test('includes the keys of the phone, from RTP and from INFO', async () => {
    const { callee, connection } = await answeredCall();
    callee.press(5);
    await eventually(() => connection.of('dtmf').length === 1, 'the bot receives the first key');
    callee.info('7');
    await eventually(() => connection.of('dtmf').length === 2, 'the bot receives the second key');

    expect(connection.of('dtmf').map(({ dtmf }) => dtmf)).toEqual([
      { track: 'inbound_track', digit: '5' },
      { track: 'inbound_track', digit: '7' },
    ]);
  });
});

describe('with detection', () => {
  test('a bot hears the call from the answer on, and receives each event inline', async () => {
    const timers = { noSpeechTimeoutMs: 300 };
    const { callId, connection } = await answeredCall({ machineDetection: 'detect', timers });
    await eventually(
      () => connection.of('amd').some(({ amd }) => amd.event === 'amd_no_speech_detected'),
      'the bot receives the verdict inline',
    );

    const inline = connection.of('amd').map(({ amd }) => amd);
    const published = () => rig.eventsOf(callId).filter(({ type }) => type === 'amd');
    await eventually(() => published().length >= inline.length, 'the events are published');
    expect(inline).toEqual(
      published()
        .map(({ data }) => data['amd'])
        .slice(0, inline.length),
    );
  });

  test('connect: person waits for a person, and `start` carries the verdict', async () => {
    const bot = await rig.startBot();
    const target = 'tel:+12025550100';
    await rig.laptop.dial(target, { stream: { url: bot.url, connect: 'person' } });
    const connection = await bot.connection();

    expect(connection.of('start')[0]?.start.customParameters['amd']).toBe('amd_human_detected');
  });

  test('connect: person without detection is a 400', async () => {
    const stream = { url: 'wss://bot.example/audio', connect: 'person' };
    const { status, body } = await rig.laptop.gateway.dialer.post({
      stream,
      target: 'tel:+12025550100',
    });

    expect(status).toBe(400);
    expect(body).toMatchObject({ errors: [{ path: 'stream.connect' }] });
  });
});
