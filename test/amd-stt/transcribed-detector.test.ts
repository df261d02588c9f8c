// A detector with a provider beside it, over real sockets: the effect of the provider's words and
// phrases. No fault of the provider changes more than one suffix of the reason.

import { describe, expect, test } from 'vitest';
import type { AmdEvent } from '../../src/calls/detection/amd-event.ts';
import { createSounds } from '../../src/embedded/sandbox/sounds.ts';
import { joined, silence } from '../../src/embedded/sandbox/tones.ts';
import { eventually } from '../support/eventually.ts';
import { type EngineKind, type EngineSession, startEngine } from './support/scripted-engine.ts';
import { asked, type CallOptions, TranscribedCall } from './support/transcribed-call.ts';

const sounds = createSounds();
const voicemail = sounds.voicemail.samples;
const announcement = sounds.announcement.samples;
const hello = sounds.hello.samples;
/** Longer than any timer. */
const endMs = 70_000;
const kinds: readonly EngineKind[] = ['deepgram', 'websocket'];

/** Runs the same audio without a provider. */
function withoutProvider(audio: Int16Array, options: Partial<CallOptions> = {}): TranscribedCall {
  const call = new TranscribedCall({
    ...options,
    url: 'ws://127.0.0.1:1/',
    speechToText: undefined,
  });
  call.play(audio);
  call.pushUntil(endMs);
  return call;
}

function timeline(events: readonly AmdEvent[]) {
  return events.map(({ event, elapsedMs }) => ({ event, elapsedMs }));
}

/**
 * Speaks in step with the audio: after each half second the provider returns what it has by then.
 */
async function converse(
  call: TranscribedCall,
  session: EngineSession,
  transcriptAt: (ms: number) => string,
  untilMs: number,
): Promise<void> {
  for (let ms = 500; ms <= untilMs && !call.done; ms += 500) {
    call.pushUntil(ms);
    if (call.done || call.event('amd_human_detected') !== undefined) break;
    const before = call.transcriptions.length;
    await session.untilHeard(ms);
    session.say(transcriptAt(ms), { untilMs: ms });
    await call.untilUnderstood(before + 1);
  }
  call.pushUntil(endMs);
}

describe.each(kinds)('a provider that speaks %s', (kind) => {
  test('replaces the detector’s own count of words', async () => {
    await using engine = await startEngine({ kind });
    const call = new TranscribedCall({ url: engine.url, kind, thresholdWordCount: 9 });
    call.play(announcement);

    await converse(call, await engine.session(), () => 'Hi there.', 8_000);

    expect(withoutProvider(announcement, { thresholdWordCount: 9 }).names[0]).toBe(
      'amd_machine_detected',
    );
    expect(call.events[0]).toMatchObject({
      event: 'amd_human_detected',
      reason: 'word-count',
      words: 2,
      transcript: 'Hi there.',
      transcription: 'used',
    });
  });

  test('decides the verdict of a word threshold', async () => {
    await using engine = await startEngine({ kind });
    const call = new TranscribedCall({ url: engine.url, kind, thresholdWordCount: 4 });
    call.play(hello);

    await converse(call, await engine.session(), () => 'Hello hello hello hello?', 3_000);

    expect(withoutProvider(hello, { thresholdWordCount: 4 }).names[0]).toBe('amd_human_detected');
    expect(call.events[0]).toMatchObject({
      event: 'amd_machine_detected',
      words: 4,
      transcript: 'Hello hello hello hello?',
      transcription: 'used',
    });
  });

  test.each([
    ['Please leave a message after the tone', 'voicemail-phrase'],
    ['If you record your name and reason for calling', 'call-screening'],
  ])('decides the verdict with a phrase: %s', async (transcript, reason) => {
    await using engine = await startEngine({ kind });
    const call = new TranscribedCall({ url: engine.url, kind });
    call.play(hello);
    call.pushUntil(700);
    const session = await engine.session();
    await session.untilHeard(700);

    session.say(transcript, { final: true });
    await call.untilUnderstood(1);
    call.pushUntil(endMs);

    expect(call.events[0]).toEqual(
      expect.objectContaining({
        event: 'amd_machine_detected',
        reason,
        elapsedMs: 720,
        transcript,
        transcription: 'used',
      }),
    );
    expect(call.names.at(-1)).toBe('amd_stopped');
  });

  test('starts a new text for the voice after call screening', async () => {
    await using engine = await startEngine({ kind });
    const call = new TranscribedCall({ url: engine.url, kind });
    call.play(joined([announcement, silence(4_000), hello]));
    const session = await engine.session();
    call.pushUntil(1_000);
    await session.untilHeard(1_000);
    session.say('If you record your name and reason for calling', { final: true });
    await call.untilUnderstood(1);
    const helloAtMs = announcement.length / 8 + 4_000;
    call.pushUntil(helloAtMs);
    await session.untilHeard(helloAtMs);

    call.pushUntil(helloAtMs + 900);
    await session.untilHeard(helloAtMs + 900);
    session.say('Hello?', { final: true });
    await call.untilUnderstood(3);
    call.pushUntil(endMs);

    expect(call.events).toMatchObject([
      { event: 'amd_machine_detected', reason: 'call-screening' },
      { event: 'amd_machine_stopped_speaking' },
      { event: 'amd_stopped', reason: 'human-after-screening', words: 1 },
    ]);
  });

  test('is ignored on a silent line', async () => {
    await using engine = await startEngine({ kind });
    const call = new TranscribedCall({ url: engine.url, kind });
    call.pushUntil(500);
    const session = await engine.session();
    await session.untilHeard(500);

    session.say('Please leave a message after the tone', { final: true });
    await call.untilUnderstood(1);
    call.pushUntil(endMs);

    expect(timeline(call.events)).toEqual(timeline(withoutProvider(new Int16Array(0)).events));
  });

  test('gives the whole greeting at its end', async () => {
    await using engine = await startEngine({ kind });
    const call = new TranscribedCall({ url: engine.url, kind, thresholdWordCount: 3 });
    call.play(announcement);
    const words = 'The person you were asking for is somewhere else at present'.split(' ');

    await converse(
      call,
      await engine.session(),
      (ms) => words.slice(0, Math.floor(ms / 500)).join(' '),
      7_000,
    );

    expect(call.event('amd_machine_stopped_speaking')?.transcript).toBe(words.join(' '));
    expect(call.event('amd_machine_detected')?.transcript).toBe('The person you');
  });

  test('gets every frame as linear16: lost frames as concealed, and also frames from before the connection', async () => {
    let open = (): void => undefined;
    const handshakeWhen = new Promise<void>((resolve) => (open = resolve));
    await using engine = await startEngine({ kind, handshakeWhen });
    const call = new TranscribedCall({ url: engine.url, kind });
    call.play(voicemail);
    call.pushUntil(1_000);
    for (let frame = 0; frame < 5; frame += 1) call.pushLost(7);
    open();
    const session = await engine.session();
    await session.untilHeard(1_100);
    call.pushUntil(1_500);
    await session.untilHeard(1_500);
    call.stop();

    const got = Buffer.concat(session.audio);
    const expected = Buffer.alloc(1_500 * 16);
    for (let index = 0; index < 12_000; index += 1) {
      const lost = index >= 8_000 && index < 8_800;
      expected.writeInt16LE(lost ? 7 : (voicemail[index] ?? 0), index * 2);
    }
    expect(got.equals(expected)).toBe(true);
  });

  test('is closed with the closing message once detection has stopped', async () => {
    await using engine = await startEngine({ kind });
    const call = new TranscribedCall({ url: engine.url, kind });
    const session = await engine.session();
    call.pushUntil(100);
    await session.untilHeard(100);

    call.stop();

    await eventually(() => session.closed, 'the connection is closed');
    expect(session.messages.at(-1)).toEqual(
      kind === 'deepgram' ? { type: 'CloseStream' } : { type: 'stop' },
    );
    expect(call.events).toEqual([
      expect.objectContaining({ event: 'amd_stopped', reason: 'call-ended' }),
    ]);
    expect(call.failures).toEqual([]);
  });

  test('gets no audio after the verdict human', async () => {
    await using engine = await startEngine({ kind });
    const call = new TranscribedCall({ url: engine.url, kind });
    call.play(hello);
    const session = await engine.session();

    call.pushUntil(endMs);

    await eventually(() => session.closed, 'the connection is closed');
    const human = call.event('amd_human_detected');
    expect(session.audioMs).toBeLessThanOrEqual(human?.elapsedMs ?? 0);
    expect(call.names).toEqual(['amd_human_detected', 'amd_stopped']);
  });

  test('has its interim results replaced and its final ones kept', async () => {
    await using engine = await startEngine({ kind });
    const call = new TranscribedCall({ url: engine.url, kind });
    call.play(voicemail);
    call.pushUntil(1_000);
    const session = await engine.session();
    await session.untilHeard(1_000);

    session.say('I', { final: false });
    session.say('Hi you', { final: false });
    session.say('Hi, you have', { final: true });
    session.say('reached', { final: false });
    await call.untilUnderstood(4);
    call.stop();

    expect(call.transcriptions.map(({ words }) => words)).toEqual([1, 2, 3, 4]);
  });

  test('counts only final results if the request wants no interim results', async () => {
    await using engine = await startEngine({ kind });
    const call = new TranscribedCall({
      url: engine.url,
      kind,
      speechToText: { ...asked, interim: false, sttVendorUtteranceEndMs: 1_000 },
    });
    call.play(voicemail);
    call.pushUntil(1_000);
    const session = await engine.session();
    await session.untilHeard(1_000);

    session.say('one two three');
    session.say('one two', { final: true });
    await call.untilUnderstood(1);
    call.stop();

    expect(call.transcriptions.map(({ words }) => words)).toEqual([2]);
  });
});

describe('the settings that a provider gets', () => {
  const everything = {
    sttProvider: 'engine',
    sttLanguage: 'de-DE',
    interim: false,
    sttLabel: 'spring & summer',
    continuousASRTimeoutInMS: 700,
    sttVendorUtteranceEndMs: 1_200,
    sttVendorEndpointing: 300,
  };

  async function connected(options: Omit<CallOptions, 'url'>) {
    await using engine = await startEngine({ kind: options.kind ?? 'websocket' });
    const call = new TranscribedCall({ ...options, url: engine.url });
    const session = await engine.session();
    call.pushUntil(100);
    await session.untilHeard(100);
    call.stop();
    return session;
  }

  test('for Deepgram: everything in the query, the key as a token', async () => {
    const { query, request, messages } = await connected({
      kind: 'deepgram',
      provider: { apiKey: 'hush', parameters: { model: 'nova-3' } },
      speechToText: everything,
    });

    expect(query).toEqual({
      model: 'nova-3',
      encoding: 'linear16',
      sample_rate: '8000',
      channels: '1',
      language: 'de-DE',
      interim_results: 'true',
      utterance_end_ms: '1200',
      endpointing: '300',
      tag: 'spring & summer',
    });
    expect(request.headers.authorization).toBe('Token hush');
    expect(messages[0]).not.toMatchObject({ type: 'start' });
  });

  test.each([
    ['no further settings', {}, { interim_results: 'true' }],
    ['no interim results', { interim: false }, { interim_results: 'false' }],
    ['no endpointing', { sttVendorEndpointing: 0 }, { endpointing: 'false' }],
    [
      'a wait for more speech',
      { continuousASRTimeoutInMS: 1_500 },
      { utterance_end_ms: '1500', interim_results: 'true' },
    ],
  ])('for Deepgram with %s', async (_name, changes, expected: Record<string, string>) => {
    const { query } = await connected({
      kind: 'deepgram',
      speechToText: { ...asked, ...changes },
    });

    expect(query).toEqual({
      encoding: 'linear16',
      sample_rate: '8000',
      channels: '1',
      language: 'en-US',
      interim_results: 'true',
      ...expected,
    });
  });

  test('for Offhook’s own protocol: a start message, the key as a bearer token', async () => {
    const { messages, request } = await connected({
      provider: { apiKey: 'hush', parameters: { model: 'small' } },
      speechToText: everything,
    });

    expect(messages[0]).toEqual({
      type: 'start',
      language: 'de-DE',
      encoding: 'linear16',
      sampleRate: 8_000,
      channels: 1,
      interim: false,
      label: 'spring & summer',
      continuousASRTimeoutInMS: 700,
      utteranceEndMs: 1_200,
      endpointingMs: 300,
      parameters: { model: 'small' },
    });
    expect(request.headers.authorization).toBe('Bearer hush');
  });
});

describe.each(kinds)('a provider that speaks %s and fails', (kind) => {
  /**
   * Expects that only the reason of the verdict says so. Event names, times and the rest are as
   * without a provider.
   */
  function expectFallBack(
    call: TranscribedCall,
    state: string,
    options: Partial<CallOptions> = {},
  ) {
    const without = withoutProvider(voicemail, options);
    expect(timeline(call.events)).toEqual(timeline(without.events));
    expect(call.events[0]).toEqual({
      ...without.events[0],
      reason: `${without.events[0]?.reason}-transcription-${state}`,
      transcription: state,
    });
  }

  const trouble: readonly (readonly [string, string, (session: EngineSession) => void])[] = [
    ['closes at once', 'connection-lost', ({ socket }) => socket.close(1_011)],
    ['breaks the connection', 'connection-lost', ({ socket }) => socket.terminate()],
    ['sends text that is not JSON', 'not-understood', (session) => session.send('<html>')],
    ['sends JSON that is not an object', 'not-understood', (session) => session.send('[[[[1]]]]')],
    [
      'sends a transcript that is not a string',
      'not-understood',
      (session) =>
        session.send({ type: 'Results', transcript: { a: 1 }, channel: { alternatives: 'x' } }),
    ],
    ['sends audio back', 'not-understood', ({ socket }) => socket.send(Buffer.alloc(320))],
    ['sends an oversized message', 'not-understood', (session) => session.say('x'.repeat(100_000))],
    [
      'sends a message in endless fragments',
      'not-understood',
      ({ socket }) => {
        for (let piece = 0; piece < 100; piece += 1) socket.send('{', { fin: false });
      },
    ],
    ['makes up words', 'implausible', (session) => session.say('la '.repeat(500))],
    [
      'makes up words a few at a time',
      'implausible',
      (session) => {
        for (let count = 0; count < 40; count += 1) session.say('la la', { final: true });
      },
    ],
    [
      'sends too many messages',
      'too-many-messages',
      (session) => {
        for (let count = 0; count < 1_000; count += 1) session.send({ type: 'Metadata' });
      },
    ],
    [
      'sends endless pings',
      // Depends on which limit it exceeds first.
      expect.stringMatching(/too-many-messages|not-understood|connection-lost/) as string,
      ({ socket }) => {
        for (let count = 0; count < 1_000; count += 1) socket.ping();
      },
    ],
    [
      'reports that it failed',
      'provider-error',
      (session) => session.send({ type: kind === 'deepgram' ? 'Error' : 'error', message: 'no' }),
    ],
  ];

  test.each(trouble)('%s', async (_name, reason, script) => {
    await using engine = await startEngine({ kind, script });
    const call = new TranscribedCall({ url: engine.url, kind, thresholdWordCount: 5 });
    call.play(voicemail);
    call.pushUntil(300);

    await call.untilFailed();
    call.pushUntil(endMs);

    expect(call.failures).toEqual([{ provider: 'engine', reason, failures: 1 }]);
    expectFallBack(call, 'failed', { thresholdWordCount: 5 });
    await eventually(() => engine.sessions[0]?.closed === true, 'the connection is closed');
  });

  test('refuses the handshake', async () => {
    await using engine = await startEngine({ kind, refusal: 401 });
    const call = new TranscribedCall({ url: engine.url, kind });
    call.play(voicemail);
    call.pushUntil(300);

    await call.untilFailed();
    call.pushUntil(endMs);

    expect(call.failures).toMatchObject([{ reason: 'refused-401' }]);
    expectFallBack(call, 'failed');
  });

  test('does not answer the handshake', async () => {
    await using engine = await startEngine({ kind, mute: true });
    const call = new TranscribedCall({ url: engine.url, kind });
    call.play(voicemail);

    await call.untilFailed();
    call.pushUntil(endMs);

    expect(call.failures).toMatchObject([{ reason: 'connect-timeout' }]);
    expectFallBack(call, 'failed');
  });

  test('cannot be reached', async () => {
    const engine = await startEngine({ kind });
    await engine[Symbol.asyncDispose]();
    const call = new TranscribedCall({ url: engine.url, kind });
    call.play(voicemail);

    await call.untilFailed();
    call.pushUntil(endMs);

    expect(call.failures).toMatchObject([{ reason: 'connect-failed' }]);
    expectFallBack(call, 'failed');
  });

  test('has a key that a header cannot hold', async () => {
    await using engine = await startEngine({ kind });
    const call = new TranscribedCall({
      url: engine.url,
      kind,
      provider: { apiKey: 'a\r\nHost: b' },
    });
    call.play(voicemail);

    await call.untilFailed();
    call.pushUntil(endMs);

    expectFallBack(call, 'failed');
  });

  test('stalls from the start', async () => {
    await using engine = await startEngine({ kind });
    const call = new TranscribedCall({ url: engine.url, kind, thresholdWordCount: 5 });
    call.play(voicemail);
    await engine.session();

    call.pushUntil(endMs);

    expectFallBack(call, 'late', { thresholdWordCount: 5 });
    expect(call.failures).toEqual([]);
  });

  test('disconnects halfway and has its earlier results discarded', async () => {
    await using engine = await startEngine({ kind });
    const call = new TranscribedCall({ url: engine.url, kind, thresholdWordCount: 9 });
    call.play(voicemail);
    call.pushUntil(500);
    const session = await engine.session();
    await session.untilHeard(500);
    session.say('Hi', { final: true });
    await call.untilUnderstood(1);

    session.socket.close(1_001);
    await call.untilFailed();
    call.pushUntil(endMs);

    expectFallBack(call, 'failed', { thresholdWordCount: 9 });
  });

  test('sends its results too late', async () => {
    await using engine = await startEngine({ kind });
    const call = new TranscribedCall({ url: engine.url, kind });
    call.play(hello);
    const session = await engine.session();
    call.pushUntil(200);
    await session.untilHeard(200);
    session.say('He', { untilMs: 100 });
    await call.untilUnderstood(1);

    call.pushUntil(endMs);
    session.say('Please leave a message after the tone', { final: true });
    await eventually(() => session.closed, 'the connection is closed');

    expect(timeline(call.events)).toEqual(timeline(withoutProvider(hello).events));
    expect(call.events[0]).toMatchObject({ transcript: 'He', transcription: 'late' });
  });

  test('does not answer the closing handshake and is disconnected', async () => {
    let greeted = false;
    let left = false;
    const deaf = { onAudio: () => (greeted = true), onLeft: () => (left = true) };
    await using engine = await startEngine({ kind, deaf });
    const call = new TranscribedCall({ url: engine.url, kind });
    call.pushUntil(1_000);
    await eventually(() => greeted, 'the provider has audio');

    call.stop();

    await eventually(() => left, 'the connection is gone');
  });
});

describe('a provider that this gateway does not have', () => {
  test('counts as failed, and the events say so', () => {
    const call = new TranscribedCall({
      url: 'ws://127.0.0.1:1/',
      speechToText: { sttProvider: 'gone', sttLanguage: 'en-US' },
    });
    call.play(voicemail);

    call.pushUntil(endMs);

    expect(timeline(call.events)).toEqual(timeline(withoutProvider(voicemail).events));
    expect(call.events[0]?.reason).toMatch(/-transcription-unconfigured$/);
    expect(call.events.every(({ transcription }) => transcription === 'unconfigured')).toBe(true);
    expect(call.failures).toEqual([{ provider: 'gone', reason: 'unconfigured', failures: 1 }]);
  });

  test('is replaced by the default provider if there is one', async () => {
    await using engine = await startEngine();
    const call = new TranscribedCall({
      url: engine.url,
      speechToText: { sttProvider: 'gone', sttLanguage: 'en-GB' },
      defaultProvider: 'engine',
    });
    call.play(hello);

    await converse(call, await engine.session(), () => 'Hello?', 3_000);

    expect((await engine.session()).messages[0]).toMatchObject({ language: 'en-GB' });
    expect(call.events[0]).toMatchObject({ transcript: 'Hello?', transcription: 'used' });
    expect(call.failures).toEqual([]);
  });
});
