// Bots that people have, as they are, at the whole gateway: their audio is a phone's RTP, and the phone's is theirs.

import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readMulawBytes, recordingUrl } from '../../src/embedded/sandbox/wav-file.ts';
import { eventually } from '../support/eventually.ts';
import { type Laptop, startLaptop } from '../support/laptop.ts';
import { pattern, withoutSilence } from '../support/streams/findable-audio.ts';
import { OpenAiPeer } from '../support/streams/openai-peer.ts';
import { PipecatPeer } from '../support/streams/pipecat-peer.ts';
import { StreamCallee } from '../support/streams/stream-callee.ts';
import { problemsOfStream } from '../support/streams/stream-messages.ts';

const recording = readMulawBytes(recordingUrl('talker-answer'));
/** In whole packets. */
const voice = recording.subarray(0, recording.length - (recording.length % 160));

let laptop: Laptop;
beforeAll(async () => {
  laptop = await startLaptop();
});
afterAll(() => laptop.close());

/** A phone that is called by a bot, and has answered. */
async function answered(url: string, more: Record<string, unknown> = {}) {
  const { callee, placed } = await StreamCallee.called((target) =>
    laptop.dial(target, { stream: { url }, machineDetection: 'disabled', ...more }),
  );
  await callee.answer();
  return { callee, callId: placed.callId };
}

async function endOf(callId: string) {
  const ends = () =>
    laptop.facts.filter((fact) => fact.callId === callId && fact.type === 'completed');
  await eventually(() => ends().length > 0, 'the call ends');
  return ends()[0]?.data;
}

const spoken = (callee: StreamCallee) => withoutSilence(callee.heard);

describe.concurrent('the OpenAI Agents SDK’s Twilio transport', () => {
  const greeting = [0, 1, 2, 3, 4].map((seed) => pattern(1_600, seed));
  const answer = pattern(1_600, 9);

  test('its burst is what the phone hears, to the byte; its marks return', async () => {
    await using peer = await OpenAiPeer.start([greeting]);
    const { callee, callId } = await answered(peer.url);
    await using _phone = callee;
    const marks = () => peer.texts.filter((text) => text.startsWith('{"event":"mark"')).length;
    await eventually(() => marks() === 6, 'all marks returned');

    expect(spoken(callee).equals(Buffer.concat(greeting))).toBe(true);
    await eventually(() => peer.realtime.audioBytes >= 8_000, 'the agent hears the line');
    callee.hangUp();
    expect(await endOf(callId)).toMatchObject({ reasonCode: 'Caller-disconnected' });
    await eventually(() => peer.transports[0]?.status === 'disconnected', 'it saw the end');
    expect(peer.errors).toEqual([]);
    expect(problemsOfStream(peer.texts, { isOver: true })).toEqual([]);
  });

  test('who interrupts it is heard, and hears the rest no more', async () => {
    const long = [...greeting, ...greeting, ...greeting, ...greeting, ...greeting];
    await using peer = await OpenAiPeer.start([long, [answer]]);
    const { callee } = await answered(peer.url);
    await using _phone = callee;
    await eventually(() => spoken(callee).length >= 4_000, 'half a second of it');
    await callee.speak(voice);
    await eventually(() => spoken(callee).includes(answer), 'the answer');

    const heard = spoken(callee);
    const cutMs = heard.indexOf(answer) / 8;
    expect(heard.subarray(0, cutMs * 8).equals(Buffer.concat(long).subarray(0, cutMs * 8))).toBe(
      true,
    );
    expect(cutMs).toBeLessThan(5_000);
    // It knows by the marks: the pieces of 200 ms that were heard, and 50 ms of grace.
    const [truncation] = peer.realtime.of('conversation.item.truncate');
    const keptMs = Number(truncation?.['audio_end_ms']) - 50;
    expect(keptMs % 200).toBe(0);
    expect(keptMs).toBeGreaterThanOrEqual(200);
    expect(keptMs).toBeLessThanOrEqual(cutMs);
    expect(peer.errors).toEqual([]);
  });
});

describe.concurrent('a Pipecat bot', () => {
  test('knows the call, is heard to the byte, hears a key, and hangs up at its end', async () => {
    const says = pattern(8_000, 3);
    await using peer = await PipecatPeer.start({ says });
    const { callee, callId } = await answered(peer.url, {
      caller: '15550100',
      metadata: { campaign: 'spring', nested: { a: 1 } },
    });
    await using _phone = callee;
    await eventually(() => spoken(callee).length >= says.length, 'all was heard');
    const [session] = peer.sessions;

    expect(spoken(callee).equals(says)).toBe(true);
    expect(session?.callData).toMatchObject({
      stream_id: expect.stringMatching(/^MZ[0-9a-f]{32}$/),
      call_id: expect.stringMatching(/^CA[0-9a-f]{32}$/),
      body: { callId, campaign: 'spring', nested: '{"a":1}' },
      from: '15550100',
      to: expect.stringMatching(/^sip:callee@127\.0\.0\.1:\d+$/),
    });
    callee.press(5);
    await eventually(() => session?.digits.length === 1, 'the key');
    expect(session?.digits).toEqual(['5']);
    await session?.end();
    await callee.isHungUp();
    expect(await endOf(callId)).toMatchObject({ reasonCode: 'Bot-disconnected' });
    expect(problemsOfStream(session?.texts ?? [], { isOver: false })).toEqual([]);
  });

  test('hangs up by the REST form, where its base_url is the gateway', async () => {
    const text = await readFile(join(laptop.gateway.dataDir, 'dev-app.json'), 'utf8');
    const { appId, streamSecret } = JSON.parse(text) as {
      readonly appId: string;
      readonly streamSecret: string;
    };
    const restApi = { baseUrl: laptop.gateway.runtime.httpUrl, authToken: streamSecret };
    await using peer = await PipecatPeer.start({ says: pattern(320, 0), restApi });
    const { callee, callId } = await answered(peer.url);
    await using _phone = callee;
    await eventually(() => spoken(callee).length === 320, 'it has spoken');
    const [session] = peer.sessions;
    // As the page on streams has it made of the app's id.
    const digits = createHash('sha256').update(appId).digest('hex').slice(0, 32);
    expect(session?.accountSid).toBe(`AC${digits}`);
    const ended = session?.end();
    await callee.isHungUp();
    await ended;

    expect(session?.hangUpStatus).toBe(200);
    expect(await endOf(callId)).toMatchObject({ reasonCode: 'Bot-disconnected' });
  });

  test('who interrupts it hears the rest no more', async () => {
    const says = pattern(80_000, 3);
    await using peer = await PipecatPeer.start({ says });
    const { callee } = await answered(peer.url);
    await using _phone = callee;
    await eventually(() => spoken(callee).length >= 4_000, 'half a second of it');
    await callee.speak(voice);

    expect(peer.sessions[0]?.interruptions).toBe(1);
    const heard = spoken(callee);
    expect(heard.length).toBeLessThan(40_000);
    expect(heard.equals(says.subarray(0, heard.length))).toBe(true);
  });
});
