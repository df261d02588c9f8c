// Unchanged bot software of other projects, tested against the wire format.

import { describe, expect, test } from 'vitest';
import { readMulawBytes, recordingUrl } from '../../src/embedded/sandbox/wav-file.ts';
import { eventually } from '../support/eventually.ts';
import { FakeGateway } from '../support/streams/fake-gateway.ts';
import { pattern, withoutSilence } from '../support/streams/findable-audio.ts';
import { OpenAiPeer } from '../support/streams/openai-peer.ts';
import { PipecatPeer } from '../support/streams/pipecat-peer.ts';
import { startRestApi } from '../support/streams/rest-api.ts';
import { problemsOfStream } from '../support/streams/stream-messages.ts';

const voice = readMulawBytes(recordingUrl('talker-answer'));

const spoken = (gateway: FakeGateway) => withoutSilence(Buffer.concat(gateway.heard));

const marksOf = (gateway: FakeGateway) =>
  gateway.received.flatMap((message) => (message.event === 'mark' ? [message.mark.name] : []));

describe('the OpenAI Agents SDK’s Twilio transport', () => {
  const greeting = [0, 1, 2, 3, 4].map((seed) => pattern(1_600, seed));
  const answer = [pattern(1_600, 9)];

  test('plays a burst of five pieces to the byte, and returns its marks in order', async () => {
    await using peer = await OpenAiPeer.start([greeting]);
    const gateway = await FakeGateway.connect({ url: peer.url });
    await eventually(() => gateway.marks.length === 6, 'all marks returned');

    expect(gateway.received.map(({ event }) => event)).toEqual([
      ...greeting.flatMap(() => ['media', 'mark']),
      'mark',
    ]);
    expect(gateway.marks.map(({ name }) => name)).toEqual(marksOf(gateway));
    expect(spoken(gateway).equals(Buffer.concat(greeting))).toBe(true);
    // Until the agent's own session is ready, the first second of the stream or less waits.
    await eventually(() => peer.realtime.audioBytes >= 8_000, 'the agent hears the line');
    gateway.stop();
    await eventually(
      () => peer.transports[0]?.status === 'disconnected',
      'the transport is disconnected',
    );
    expect(peer.errors).toEqual([]);
    expect(gateway.ignored).toEqual([]);
    expect(problemsOfStream(gateway.sent, { isOver: true })).toEqual([]);
  });

  test('clears when interrupted, knows what was heard, and answers', async () => {
    await using peer = await OpenAiPeer.start([[...greeting, ...greeting, ...greeting], answer]);
    const gateway = await FakeGateway.connect({ url: peer.url });
    await eventually(() => gateway.marks.length >= 2, 'it speaks');
    gateway.speak(voice);
    await eventually(() => peer.realtime.of('conversation.item.truncate').length > 0, 'truncated');
    const heardPieces = gateway.marks.filter(({ cleared }) => !cleared).length;
    await eventually(() => spoken(gateway).includes(answer[0] as Buffer), 'the answer');

    expect(gateway.received.filter(({ event }) => event === 'clear')).toHaveLength(1);
    expect(gateway.marks.some(({ cleared }) => cleared)).toBe(true);
    // The estimate is based on the returned marks: pieces of 200 ms, with a tolerance of 50 ms.
    expect(peer.realtime.of('conversation.item.truncate')[0]).toMatchObject({
      audio_end_ms: heardPieces * 200 + 50,
    });
    expect(peer.errors).toEqual([]);
  });

  test('ignores AMD events and keys, which it does not know', async () => {
    await using peer = await OpenAiPeer.start([greeting]);
    const gateway = await FakeGateway.connect({ url: peer.url, speed: 5 });
    gateway.detect({ event: 'amd_human_detected', reason: 'short-greeting' });
    gateway.press('5');
    await eventually(() => gateway.marks.length === 6, 'all marks returned');

    expect(spoken(gateway).equals(Buffer.concat(greeting))).toBe(true);
    expect(peer.errors).toEqual([]);
  });
});

describe('a Pipecat bot', () => {
  test('identifies the call by the first two messages', async () => {
    await using peer = await PipecatPeer.start({ says: pattern(320, 0) });
    const gateway = await FakeGateway.connect({
      url: peer.url,
      customParameters: { from_number: '+15550100', to_number: '+15550101', campaign: 'spring' },
    });
    await eventually(() => peer.sessions[0]?.callData !== undefined, 'it knows the call');

    expect(peer.sessions[0]?.callData).toEqual({
      stream_id: gateway.streamSid,
      call_id: gateway.callSid,
      body: expect.objectContaining({ campaign: 'spring' }),
      from: '+15550100',
      to: '+15550101',
    });
  });

  test('has its chunks of 40 ms played to the byte', async () => {
    const says = pattern(8_000, 3);
    await using peer = await PipecatPeer.start({ says });
    const gateway = await FakeGateway.connect({ url: peer.url });
    await eventually(() => spoken(gateway).length >= says.length, 'all was heard');

    expect(spoken(gateway).equals(says)).toBe(true);
    expect(gateway.received.every(({ event }) => event === 'media')).toBe(true);
    expect(gateway.received).toHaveLength(25);
    expect(gateway.ignored).toEqual([]);
  });

  test('is stopped by an interruption, and receives a key', async () => {
    await using peer = await PipecatPeer.start({ says: pattern(40_000, 3) });
    const gateway = await FakeGateway.connect({ url: peer.url });
    await eventually(() => gateway.queuedMs > 0, 'it speaks');
    gateway.speak(voice);
    gateway.press('5');
    await eventually(() => gateway.received.at(-1)?.event === 'clear', 'cleared');

    expect(gateway.queuedMs).toBe(0);
    expect(peer.sessions[0]).toMatchObject({ interruptions: 1, digits: ['5'] });
  });

  test('hangs up by the REST request at its end, and closes', async () => {
    await using api = await startRestApi();
    const restApi = { baseUrl: api.url, authToken: 'secret' };
    await using peer = await PipecatPeer.start({ says: pattern(320, 0), restApi });
    const gateway = await FakeGateway.connect({ url: peer.url });
    await eventually(() => spoken(gateway).length === 320, 'it has spoken');
    await peer.sessions[0]?.end();
    await eventually(() => gateway.closeCode !== undefined, 'it closes');

    const { accountSid, callSid } = gateway;
    expect(gateway.closeCode).toBe(1000);
    expect(api.requests).toEqual([
      {
        method: 'POST',
        path: `/2010-04-01/Accounts/${accountSid}/Calls/${callSid}.json`,
        authorization: `Basic ${Buffer.from(`${accountSid}:secret`).toString('base64')}`,
        body: 'Status=completed',
      },
    ]);
    expect(peer.sessions[0]?.hangUpStatus).toBe(200);
  });
});
