import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { defaultAmdTimers } from '../../src/calls/call-types.ts';
import type { AudioEnvelope } from '../../src/calls/capture/capture.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { createMediaPort, type MediaGateway } from '../../src/media/media-port.ts';
import { freePortRange } from '../support/free-port.ts';
import { forSuite } from '../support/opened.ts';
import { FarEnd } from './support/far-end.ts';
import {
  answerFor,
  callId,
  createScripted as create,
  portOf,
  untilQuiet,
} from './support/gateway.ts';
import { observe, settingsFor, until } from './support/observed.ts';
import { script } from './support/scripted-detector.ts';

const loud = 0x10;

describe('media port', () => {
  let media: MediaGateway;

  beforeAll(async () => {
    media = create();
    expect(await media.ready()).toBe(true);
  });

  afterAll(() => media[Symbol.asyncDispose]());

  async function open() {
    const observed = observe();
    const session = await media.open(callId, observed);
    if (session === undefined) throw new Error('no session');
    return { observed, session, port: portOf(session.offerSdp) };
  }

  test('a call is offered, answered, hears silence and is heard by the detector', async () => {
    await using farEnd = await FarEnd.open();
    const { observed, session, port } = await open();

    expect(port % 2).toBe(0);
    expect(session.applyAnswer(answerFor(farEnd.port), 'answer')).toBe(true);
    session.send({ kind: 'detect', settings: settingsFor(script.firstSound) });
    await until(() => farEnd.received.length >= 5, 'silence from the gateway');
    const stop = farEnd.stream(port, loud);
    await until(() => observed.amd.length === 2, 'detection');
    stop();

    expect(observed.amd.map((event) => event.event)).toEqual(['amd_human_detected', 'amd_stopped']);
    const [first, second] = farEnd.received;
    expect(first?.marker).toBe(true);
    // Whatever is left out by a clock that is late is a pause, with a marker behind it.
    const elapsed = ((second?.timestamp ?? 0) - (first?.timestamp ?? 0)) >>> 0;
    expect(second?.marker).toBe(elapsed !== 160);
    expect(first?.fromPort).toBe(port);
    expect(first?.payload.equals(Buffer.alloc(160, 0xff))).toBe(true);
    expect(second?.ssrc).toBe(first?.ssrc);
    session.close();
  });

  test('early media is not answered with audio and not detected', async () => {
    await using farEnd = await FarEnd.open();
    const { observed, session, port } = await open();
    session.applyAnswer(answerFor(farEnd.port), 'early');
    const before = (await media.statistics()).packetsReceived;
    for (let packet = 0; packet < 10; packet += 1) farEnd.send(port, loud);
    let received = 0;
    while (received < 10) received = (await media.statistics()).packetsReceived - before;
    expect(farEnd.received).toEqual([]);

    session.applyAnswer(answerFor(farEnd.port), 'answer');
    session.send({ kind: 'detect', settings: settingsFor(script.firstSound) });
    await until(() => farEnd.received.length >= 5, 'silence from the gateway');
    session.send({ kind: 'stopDetection', reason: 'call-ended' });
    await until(() => observed.amd.length > 0, 'the end of detection');

    expect(observed.amd.map((event) => event.reason)).toEqual(['call-ended']);
    session.close();
  });

  test('who asks how loud it was is answered, also before the call is', async () => {
    await using farEnd = await FarEnd.open();
    const told: (AudioEnvelope | undefined)[] = [];
    const session = await media.open(callId, {
      observe: (event) => {
        if (event.kind === 'envelope') told.push(event.envelope);
      },
    });
    session?.applyAnswer(answerFor(farEnd.port), 'early');
    session?.send({ kind: 'askEnvelope' });
    await until(() => told.length === 1, 'that there was no sound yet');
    expect(told).toEqual([undefined]);

    session?.applyAnswer(answerFor(farEnd.port), 'answer');
    session?.send({ kind: 'askEnvelope' });
    await until(() => told.length === 2, 'how loud it was');
    expect(told[1]).toMatchObject({ stepMs: 40, notes: { notes: [] } });
    session?.close();
    await until(() => told.length === 3, 'how loud it was in all');
    expect(told[2]).toMatchObject({ stepMs: 40 });
  });

  test('audio goes to where the packets come from', async () => {
    await using signalled = await FarEnd.open();
    await using actual = await FarEnd.open();
    const { session, port } = await open();
    session.applyAnswer(answerFor(signalled.port), 'answer');
    await until(() => signalled.received.length > 0, 'silence at the signalled address');
    const stop = actual.stream(port, loud);
    await until(() => actual.received.length >= 3, 'silence at the actual address');
    stop();
    session.close();
  });

  test('a key is told with its duration', async () => {
    await using farEnd = await FarEnd.open();
    const { observed, session, port } = await open();
    session.applyAnswer(answerFor(farEnd.port), 'answer');
    await until(() => farEnd.received.length > 0, 'the answer to be in force');
    for (let copy = 0; copy < 3; copy += 1) {
      const header = [0x80, 101, 0, 10 + copy, 0, 0, 3, 0, 0, 0, 0, 9];
      farEnd.sendRaw(port, Uint8Array.from([...header, 4, 0x8a, 0x03, 0x20]));
    }
    await until(() => observed.dtmf.length > 0, 'the key');

    expect(observed.dtmf).toEqual([{ digit: '4', durationMs: 100 }]);
    session.close();
  });

  test('hold stops the audio, resume starts it, and the version grows with each change only', async () => {
    await using farEnd = await FarEnd.open();
    const { session } = await open();
    const version = (sdp: string | undefined) => /o=- \d+ (\d+) /.exec(sdp ?? '')?.[1];
    session.applyAnswer(answerFor(farEnd.port), 'answer');
    await until(() => farEnd.received.length > 0, 'silence');

    const held = session.answerReoffer(answerFor(farEnd.port, 'a=sendonly\r\n'));
    expect(held).toContain('a=recvonly');
    await untilQuiet(media);
    const markers = () => farEnd.received.filter((packet) => packet.marker).length;
    const before = markers();
    const heldAgain = session.answerReoffer(answerFor(farEnd.port, 'a=sendonly\r\n'));
    const resumed = session.answerReoffer(answerFor(farEnd.port));
    const askedToOffer = session.answerReoffer('');
    await until(() => markers() > before, 'resume');

    expect([held, heldAgain, resumed, askedToOffer].map(version)).toEqual(['2', '2', '3', '4']);
    expect(askedToOffer).toContain('RTP/AVP 0 8 101');
    expect(session.answerReoffer(answerFor(0))).toBeUndefined();
    session.close();
  });

  test('a 200 without SDP means the answer of the 18x before it', async () => {
    await using farEnd = await FarEnd.open();
    const { session } = await open();
    expect(session.applyAnswer('', 'answer')).toBe(false);
    session.applyAnswer(answerFor(farEnd.port), 'early');

    expect(session.applyAnswer('', 'answer')).toBe(true);
    await until(() => farEnd.received.length > 0, 'silence');
    session.close();
  });

  test('an unusable answer is said to be one', async () => {
    const { session } = await open();

    expect(session.applyAnswer('v=0\r\n', 'answer')).toBe(false);
    session.close();
  });

  test('a detector that throws hurts its own call only', async () => {
    await using farEnd = await FarEnd.open();
    const throwing = await open();
    const absent = await open();
    const healthy = await open();
    throwing.session.applyAnswer(answerFor(4_000), 'answer');
    throwing.session.send({ kind: 'detect', settings: settingsFor(script.throws) });
    absent.session.send({ kind: 'detect', settings: settingsFor(script.throwsAtStart) });
    healthy.session.applyAnswer(answerFor(farEnd.port), 'answer');
    healthy.session.send({ kind: 'detect', settings: settingsFor(script.firstSound) });
    const stop = farEnd.stream(healthy.port, loud);
    await until(() => healthy.observed.amd.length === 2, 'detection of the healthy call');
    await until(() => throwing.observed.amd.length === 2, 'the failure');
    stop();

    const failed = ['amd_error', 'amd_stopped'];
    expect(throwing.observed.amd.map((event) => event.event)).toEqual(failed);
    expect(absent.observed.amd.map((event) => event.event)).toEqual(failed);
    for (const { session } of [throwing, absent, healthy]) session.close();
  });

  test('what stopping has to say is still told after the session was closed', async () => {
    const { observed, session } = await open();
    session.send({ kind: 'detect', settings: settingsFor() });
    session.send({ kind: 'stopDetection', reason: 'call-ended' });
    session.close();
    session.close();
    session.send({ kind: 'stopDetection', reason: 'again' });
    await until(() => observed.amd.length > 0, 'the end of detection');

    expect(observed.amd).toMatchObject([{ event: 'amd_stopped', reason: 'call-ended' }]);
  });
});

describe('media port, apart', () => {
  /** Each test has some of its own. */
  const portAt = (offset: number) => ports.portMin + offset;
  const portsFrom = (first: number, last: number) => ({
    portMin: portAt(first),
    portMax: portAt(last),
  });

  const ports = forSuite(() => freePortRange(150));

  test('closing ends a detection that was not stopped, and the end of all waits for what is to be told', async () => {
    const media = create(portsFrom(90, 99));
    const observed = observe();
    const session = await media.open(callId, observed);
    session?.send({ kind: 'detect', settings: settingsFor() });
    session?.close();
    await media[Symbol.asyncDispose]();

    expect(observed.amd.map((event) => event.reason)).toEqual(['session-closed']);
    expect(await media.open(callId, observed)).toBeUndefined();
  });

  test('a call without packets is told to be inactive', async () => {
    await using media = create({ inactivityTimeoutMs: 200 });
    await using farEnd = await FarEnd.open();
    const observed = observe();
    const session = await media.open(callId, observed);
    session?.applyAnswer(answerFor(farEnd.port), 'answer');
    await until(() => observed.inactive > 0, 'inactivity');

    expect(observed.inactive).toBe(1);
  });

  test('an exhausted pool refuses, and a closed port rests before it is given again', async () => {
    await using media = create({ ...portsFrom(0, 3), portDrainMs: 1_500 });
    const first = await media.open(callId, observe());
    const second = await media.open(callId, observe());
    expect([first, second].map((session) => portOf(session?.offerSdp ?? ''))).toEqual([
      portAt(0),
      portAt(2),
    ]);
    expect(await media.open(callId, observe())).toBeUndefined();

    const closedMs = performance.now();
    first?.close();
    expect(await media.open(callId, observe())).toBeUndefined();
    let again = await media.open(callId, observe());
    while (again === undefined) {
      await pause(10);
      again = await media.open(callId, observe());
    }

    expect(performance.now() - closedMs).toBeGreaterThanOrEqual(1_500);
    expect(portOf(again.offerSdp)).toBe(portAt(0));
    expect((await media.statistics()).sessions).toBe(2);
  });

  test('a port that another program holds is passed over', async () => {
    const other = createSocket('udp4');
    other.bind(portAt(11), '127.0.0.1');
    await once(other, 'listening');
    try {
      await using media = create(portsFrom(10, 19));
      const session = await media.open(callId, observe());

      expect(portOf(session?.offerSdp ?? '')).toBe(portAt(12));
    } finally {
      other.close();
    }
  });

  test('the calls of another gateway on the same range are passed over, however many they are', async () => {
    const range = portsFrom(100, 149);
    await using other = create(range);
    for (let call = 0; call < 20; call += 1) await other.open(callId, observe());
    await using media = create(range);

    const session = await media.open(callId, observe());

    expect(portOf(session?.offerSdp ?? '')).toBe(portAt(140));
  });

  test('a range that is wholly taken refuses the call', async () => {
    const other = createSocket('udp4');
    other.bind(portAt(20), '127.0.0.1');
    await once(other, 'listening');
    try {
      await using media = create({ ...portsFrom(20, 21), portDrainMs: 0 });

      expect(await media.open(callId, observe())).toBeUndefined();
    } finally {
      other.close();
    }
  });

  test('two workers share the calls and the ports', async () => {
    await using media = create({ ...portsFrom(30, 45), workers: 2 });
    await media.ready();
    const sessions = [];
    for (let call = 0; call < 8; call += 1) sessions.push(await media.open(callId, observe()));
    const ports = sessions.map((session) => portOf(session?.offerSdp ?? ''));

    expect(new Set(ports).size).toBe(8);
    expect((await media.statistics()).sessions).toBe(8);
    expect(await media.open(callId, observe())).toBeUndefined();
  });

  test('a worker that dies fails its calls, closes their detection, and is replaced', async () => {
    await using media = create({ ...portsFrom(50, 69) });
    const killer = observe();
    const bystander = observe();
    const ended = observe();
    const first = await media.open(callId, killer);
    await media.open(callId, bystander);
    (await media.open(callId, ended))?.close();
    await media.statistics();
    first?.applyAnswer(answerFor(4_000), 'answer');
    first?.send({ kind: 'detect', settings: settingsFor(script.kills) });
    await until(() => bystander.failures.length > 0, 'the failure to be told');

    expect(killer.amd.map((event) => event.event)).toEqual(['amd_error', 'amd_stopped']);
    expect(killer.failures).toEqual(['media worker died']);
    expect(bystander.failures).toEqual(['media worker died']);
    expect(bystander.amd).toEqual([]);
    expect(ended.failures).toEqual([]);

    // The dead session is harmless, and the new worker goes on after the ports of the old one.
    expect(first?.applyAnswer(answerFor(4_000), 'answer')).toBe(true);
    first?.send({ kind: 'detect', settings: settingsFor() });
    first?.send({ kind: 'stopDetection', reason: 'call-ended' });
    first?.close();
    const next = await media.open(callId, observe());
    expect(portOf(next?.offerSdp ?? '')).toBe(portAt(56));
  });

  test('a worker that cannot start gives no session, and ends with the port', async () => {
    const media = create({ detectorModule: 'file:///nowhere/detector.ts' });
    const opening = media.open(callId, observe());
    await media[Symbol.asyncDispose]();

    expect(await opening).toBeUndefined();
  });

  test('speaks over IPv6', async () => {
    await using media = create({
      host: '::1',
      publicHost: '::1',
      ...portsFrom(70, 79),
    });
    await using farEnd = await FarEnd.open('::1');
    const observed = observe();
    const session = await media.open(callId, observed);
    const sdp = answerFor(farEnd.port).replaceAll('IP4 127.0.0.1', 'IP6 ::1');
    expect(session?.offerSdp).toContain('c=IN IP6 ::1');
    expect(session?.applyAnswer(sdp, 'answer')).toBe(true);
    session?.send({ kind: 'detect', settings: settingsFor(script.firstSound) });
    const stop = farEnd.stream(portOf(session?.offerSdp ?? ''), loud, '::1');
    await until(() => observed.amd.length === 2, 'detection');
    stop();

    expect(farEnd.received.length).toBeGreaterThan(0);
  });

  test('an address that cannot be sent to, or be bound to, is refused at the start', () => {
    expect(() => create({ host: 'localhost' })).toThrow('MEDIA_HOST');
    expect(() => create({ host: '0.0.0.0', publicHost: '0.0.0.0' })).toThrow('MEDIA_PUBLIC_HOST');
  });

  test('the detector of src/amd runs in the worker', async () => {
    const media = createMediaPort({
      host: '127.0.0.1',
      publicHost: '127.0.0.1',
      ...portsFrom(80, 89),
      workers: 1,
      inactivityTimeoutMs: 60_000,
      silenceIntervalMs: 20,
      logger: silentLogger,
    });
    const observed = observe();
    const session = await media.open(callId, observed);
    const timers = { ...defaultAmdTimers, noSpeechTimeoutMs: 200 };
    session?.applyAnswer(answerFor(4_000), 'answer');
    session?.send({ kind: 'detect', settings: { timers } });
    await until(() => observed.amd.length === 2, 'detection');
    await media[Symbol.asyncDispose]();

    expect(observed.amd.map((event) => event.event)).toEqual([
      'amd_no_speech_detected',
      'amd_stopped',
    ]);
  });
});
