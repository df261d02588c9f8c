// Engines that people run beside the gateway, as scripted servers that speak their protocols.
// vosk-server answers each message of audio. sherpa-onnx sends the text of a segment whenever it
// has some.

import { describe, expect, test } from 'vitest';
import { chunkMs } from '../../src/amd/stt/protocol.ts';
import { sherpaOnnxProtocol } from '../../src/amd/stt/sherpa-onnx.ts';
import { createUpsampler } from '../../src/amd/stt/upsampler.ts';
import { voskProtocol } from '../../src/amd/stt/vosk.ts';
import { createSounds } from '../../src/embedded/sandbox/sounds.ts';
import { tone } from '../../src/embedded/sandbox/tones.ts';
import { eventually } from '../support/eventually.ts';
import { type EngineKind, type EngineSession, startEngine } from './support/scripted-engine.ts';
import { asked, TranscribedCall } from './support/transcribed-call.ts';

const { announcement, hello } = createSounds();
const endMs = 70_000;

/**
 * A script that acts as vosk-server does: one answer per message, with the text that it has by
 * then.
 */
function voskThat(transcriptAt: (ms: number) => string) {
  return (session: EngineSession): void => {
    let answers = 0;
    session.socket.on('message', (_data, isBinary) => {
      if (!isBinary) return;
      answers += 1;
      session.say(transcriptAt(answers * chunkMs));
    });
  };
}

describe('vosk-server', () => {
  test('gets its configuration first, then unchanged audio, and eof at the end', async () => {
    await using engine = await startEngine({ kind: 'vosk' });
    const parameters = { words: 'true', max_alternatives: '0', model: 'small' };
    const provider = { parameters, apiKey: 'hush' };
    const call = new TranscribedCall({ url: engine.url, kind: 'vosk', provider });
    call.play(hello.samples);
    call.pushUntil(500);
    const session = await engine.session();
    await session.untilHeard(500);
    call.stop();
    await eventually(() => session.messages.length === 2, 'the end is sent');

    expect(session.texts.at(-1)).toBe('{"eof" : 1}');

    expect(session.request.headers['authorization']).toBe('Bearer hush');
    expect(session.messages).toEqual([
      { config: { sample_rate: 8_000, words: true, max_alternatives: 0, model: 'small' } },
      { eof: 1 },
    ]);
    const samples = Buffer.concat(session.audio).readInt16LE(2 * 2_000);
    expect(samples).toBe(hello.samples[2_000]);
  });

  test('has its words counted, because its answers show how far it has listened', async () => {
    await using engine = await startEngine({ kind: 'vosk', script: voskThat(() => 'hi there') });
    const call = new TranscribedCall({ url: engine.url, kind: 'vosk', thresholdWordCount: 9 });
    call.play(announcement.samples);
    for (let ms = 500; ms <= 8_000 && !call.done; ms += 500) {
      call.pushUntil(ms);
      const results = ms / chunkMs;
      if (call.event('amd_human_detected') === undefined) await call.untilUnderstood(results);
    }
    call.pushUntil(endMs);

    expect(call.events[0]).toMatchObject({
      event: 'amd_human_detected',
      words: 2,
      transcript: 'hi there',
      transcription: 'used',
    });
  });

  test('is not waited for if it lags', async () => {
    await using engine = await startEngine({ kind: 'vosk' });
    const call = new TranscribedCall({ url: engine.url, kind: 'vosk' });
    call.play(announcement.samples);
    call.pushUntil(2_500);
    const session = await engine.session();
    await session.untilHeard(2_500);
    // The result for the first tenth of a second, two and a half seconds late.
    session.say('hello');
    await call.untilUnderstood(1);
    call.pushUntil(endMs);

    expect(call.events[0]).toMatchObject({ transcription: 'late' });
  });

  test.each([
    ['a partial result', '{"partial": "you have"}', { transcript: 'you have', isFinal: false }],
    ['a sentence', '{"result": [], "text": "you have"}', { transcript: 'you have', isFinal: true }],
    [
      'a sentence with alternatives',
      '{"alternatives": [{"text": "you have", "confidence": 1}, {"text": "you halve"}]}',
      { transcript: 'you have', isFinal: true },
    ],
  ])('has its message read: %s', (_name, message, said) => {
    const provider = { kind: 'vosk', url: 'ws://x', parameters: {} } as const;
    const protocol = voskProtocol(provider, asked);

    expect(protocol.read(message)).toMatchObject({ kind: 'said', ...said, untilMs: 100 });
    expect(protocol.read(message)).toMatchObject({ kind: 'said', ...said, untilMs: 200 });
  });
});

describe('sherpa-onnx', () => {
  const provider = { kind: 'sherpa-onnx', url: 'ws://x', parameters: {} } as const;

  test('gets floats at 16 kHz, and Done at the end', async () => {
    await using engine = await startEngine({ kind: 'sherpa-onnx' });
    const call = new TranscribedCall({ url: engine.url, kind: 'sherpa-onnx' });
    call.play(hello.samples);
    call.pushUntil(1_000);
    const session = await engine.session();
    await session.untilHeard(1_000);
    call.stop();
    await eventually(() => session.texts.includes('Done'), 'the end is sent');

    expect(session.messages).toEqual([]);
    const bytes = Buffer.concat(session.audio);
    const loudest = Math.max(
      ...Array.from({ length: bytes.length / 4 }, (_, at) => bytes.readFloatLE(4 * at)),
    );
    const expected = Math.max(...hello.samples.subarray(0, 8_000)) / 32_768;
    expect(bytes.length).toBe(16_000 * 4);
    expect(loudest).toBeGreaterThan(0.9 * expected);
    expect(loudest).toBeLessThan(1.1 * expected);
  });

  test.each([
    ['marks the last result of a segment', true],
    ['only continues with the next segment', false],
  ])('is read if it %s', (_name, says) => {
    const protocol = sherpaOnnxProtocol(provider, asked);
    const read = (text: string, segment: number, isFinal = false) =>
      protocol.read(
        JSON.stringify({ text, segment, ...(says ? { is_final: isFinal } : {}), timestamps: [] }),
      );

    expect(read('you have', 0)).toEqual({ kind: 'said', transcript: 'you have', isFinal: false });
    expect(read('you have reached ann', 0, true)).toMatchObject({ isFinal: says });
    expect(read('leave a message', 1)).toMatchObject({
      transcript: says ? 'leave a message' : 'you have reached ann leave a message',
      isFinal: false,
    });
  });

  test('may end with its last message', () => {
    expect(sherpaOnnxProtocol(provider, asked).read('Done!')).toEqual({ kind: 'other' });
  });

  test('has its endless segments bounded', () => {
    const protocol = sherpaOnnxProtocol(provider, asked);
    let longest = 0;
    for (let segment = 0; segment < 1_000; segment += 1) {
      const message = protocol.read(JSON.stringify({ text: 'word '.repeat(50), segment }));
      if (message.kind === 'said') longest = Math.max(longest, message.transcript.length);
    }

    expect(longest).toBeLessThan(5_000);
  });

  test('gets upsampled audio without added high frequencies', () => {
    const upsample = createUpsampler();
    const whole = tone([1_000], 400, -6);
    // In chunks, as in a call.
    const out = Array.from({ length: 4 }, (_, index) =>
      upsample(whole.subarray(index * 800, (index + 1) * 800)),
    ).flatMap((part) => Array.from(part));
    const powerAt = (hz: number): number => {
      const angle = (2 * Math.PI * hz) / 16_000;
      const part = out.slice(800, 5_600);
      const sum = (of: (at: number) => number) =>
        part.reduce((total, sample, at) => total + sample * of(at), 0);
      return sum((at) => Math.cos(angle * at)) ** 2 + sum((at) => Math.sin(angle * at)) ** 2;
    };

    expect(10 * Math.log10(powerAt(7_000) / powerAt(1_000))).toBeLessThan(-50);
  });
});

describe.each<EngineKind>(['vosk', 'sherpa-onnx'])('an engine that speaks %s', (kind) => {
  test.each([
    ['Please leave a message after the tone', 'voicemail-phrase'],
    ['If you record your name and reason for calling', 'call-screening'],
  ])('decides the verdict with a phrase: %s', async (transcript, reason) => {
    await using engine = await startEngine({ kind });
    const call = new TranscribedCall({ url: engine.url, kind });
    call.play(hello.samples);
    call.pushUntil(700);
    const session = await engine.session();
    await session.untilHeard(700);

    session.say(transcript, { final: true });
    await call.untilUnderstood(1);
    call.pushUntil(endMs);

    expect(call.events[0]).toMatchObject({ event: 'amd_machine_detected', reason, transcript });
  });

  test.each<[string, string | Buffer, string]>([
    ['text that is not JSON', 'nonsense', 'not-understood'],
    ['a JSON list', '[]', 'not-understood'],
    ['a binary message', Buffer.from([1, 2, 3]), 'not-understood'],
    ['a thousand words at once', JSON.stringify({ text: 'word '.repeat(1_000) }), 'implausible'],
  ])('is given up if it sends %s', async (_name, message, reason) => {
    await using engine = await startEngine({ kind });
    const call = new TranscribedCall({ url: engine.url, kind });
    call.play(hello.samples);
    call.pushUntil(300);
    const session = await engine.session();
    await session.untilHeard(300);

    session.socket.send(message);
    await call.untilFailed();
    call.pushUntil(endMs);

    expect(call.failures).toMatchObject([{ reason }]);
    expect(call.events[0]).toMatchObject({ transcription: 'failed' });
  });
});

test('an offer to help is a person who waits, even after a greeting longer than a person’s', async () => {
  await using engine = await startEngine({ kind: 'sherpa-onnx' });
  // Without words, the verdict is "machine" by then.
  const alone = new TranscribedCall({ url: engine.url, speechToText: undefined });
  alone.play(announcement.samples);
  alone.pushUntil(endMs);
  expect(alone.names[0]).toBe('amd_machine_detected');
  const machineAtMs = alone.events[0]?.elapsedMs ?? 0;

  const call = new TranscribedCall({ url: engine.url, kind: 'sherpa-onnx' });
  call.play(announcement.samples);
  const spokenMs = announcement.samples.length / 8;
  for (let ms = 500; ms <= spokenMs + 1_500 && !call.done; ms += 250) {
    call.pushUntil(ms);
    if (call.event('amd_human_detected') !== undefined) break;
    const session = await engine.session();
    await session.untilHeard(ms - (ms % chunkMs));
    const before = call.transcriptions.length;
    session.say('Thank you for calling Acme how may I help you');
    await call.untilUnderstood(before + 1);
  }
  call.pushUntil(endMs);

  expect(machineAtMs).toBeLessThan(spokenMs);
  expect(call.events[0]).toMatchObject({
    event: 'amd_human_detected',
    reason: 'greeting-then-silence',
    transcription: 'used',
  });
});
