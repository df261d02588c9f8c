import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { defaultAmdTimers } from '../../src/calls/call-types.ts';
import type { AudioEnvelope } from '../../src/calls/capture/capture.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { createMediaPort, type MediaGateway } from '../../src/media/media-port.ts';
import { eventually } from '../support/eventually.ts';
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
import { observe, settingsFor } from './support/observed.ts';
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

  test('sends silence to an answered call, and passes its audio to the detector', async () => {
    await using farEnd = await FarEnd.open();
    const { observed, session, port } = await open();

    expect(port % 2).toBe(0);
    expect(session.applyAnswer(answerFor(farEnd.port), 'answer')).toBe('applied');
    session.send({ kind: 'detect', settings: settingsFor(script.firstSound) });
    await eventually(() => farEnd.received.length >= 5, 'silence arrives from the gateway');
    const stop = farEnd.stream(port, loud);
    await eventually(() => observed.amd.length === 2, 'detection reports its two events');
    stop();

    expect(observed.amd.map((event) => event.event)).toEqual(['amd_human_detected', 'amd_stopped']);
    const [first, second] = farEnd.received;
    expect(first?.marker).toBe(true);
    // A late clock may omit packets. That is a pause, followed by a marker.
    const elapsed = ((second?.timestamp ?? 0) - (first?.timestamp ?? 0)) >>> 0;
    expect(second?.marker).toBe(elapsed !== 160);
    expect(first?.fromPort).toBe(port);
    expect(first?.payload.equals(Buffer.alloc(160, 0xff))).toBe(true);
    expect(second?.ssrc).toBe(first?.ssrc);
    session.close();
  });

  test('sends no audio into early media, and does not detect in it', async () => {
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
    await eventually(() => farEnd.received.length >= 5, 'silence arrives from the gateway');
    session.send({ kind: 'stopDetection', reason: 'call-ended' });
    await eventually(() => observed.amd.length > 0, 'detection reports its end');

    expect(observed.amd.map((event) => event.reason)).toEqual(['call-ended']);
    session.close();
  });

  test('reports the loudness of a call on request, also before the answer', async () => {
    await using farEnd = await FarEnd.open();
    const envelopes: (AudioEnvelope | undefined)[] = [];
    const session = await media.open(callId, {
      observe: (event) => {
        if (event.kind === 'envelope') envelopes.push(event.envelope);
      },
    });
    session?.applyAnswer(answerFor(farEnd.port), 'early');
    session?.send({ kind: 'requestEnvelope' });
    await eventually(
      () => envelopes.length === 1,
      'the reply that there is no envelope yet arrives',
    );
    expect(envelopes).toEqual([undefined]);

    session?.applyAnswer(answerFor(farEnd.port), 'answer');
    session?.send({ kind: 'requestEnvelope' });
    await eventually(() => envelopes.length === 2, 'the envelope after the answer arrives');
    expect(envelopes[1]).toMatchObject({ stepMs: 40, notes: { notes: [] } });
    session?.close();
    await eventually(() => envelopes.length === 3, 'the last envelope arrives');
    expect(envelopes[2]).toMatchObject({ stepMs: 40 });
  });

  test('sends audio to the address from which packets come', async () => {
    await using signalled = await FarEnd.open();
    await using actual = await FarEnd.open();
    const { session, port } = await open();
    session.applyAnswer(answerFor(signalled.port), 'answer');
    await eventually(
      () => signalled.received.length > 0,
      'silence arrives at the signalled address',
    );
    const stop = actual.stream(port, loud);
    await eventually(() => actual.received.length >= 3, 'silence arrives at the actual address');
    stop();
    session.close();
  });

  test('reports a key with its duration', async () => {
    await using farEnd = await FarEnd.open();
    const { observed, session, port } = await open();
    session.applyAnswer(answerFor(farEnd.port), 'answer');
    await eventually(() => farEnd.received.length > 0, 'the answer is in force');
    for (let copy = 0; copy < 3; copy += 1) {
      const header = [0x80, 101, 0, 10 + copy, 0, 0, 3, 0, 0, 0, 0, 9];
      farEnd.sendRaw(port, Uint8Array.from([...header, 4, 0x8a, 0x03, 0x20]));
    }
    await eventually(() => observed.dtmf.length > 0, 'the key is reported');

    expect(observed.dtmf).toEqual([{ digit: '4', durationMs: 100 }]);
    session.close();
  });

  test('stops audio on hold and resumes it; the SDP version grows only with a change', async () => {
    await using farEnd = await FarEnd.open();
    const { session } = await open();
    const version = (sdp: string | undefined) => /o=- \d+ (\d+) /.exec(sdp ?? '')?.[1];
    session.applyAnswer(answerFor(farEnd.port), 'answer');
    await eventually(() => farEnd.received.length > 0, 'silence arrives from the gateway');

    const held = session.answerReoffer(answerFor(farEnd.port, 'a=sendonly\r\n'));
    expect(held).toContain('a=recvonly');
    await untilQuiet(media);
    const markers = () => farEnd.received.filter((packet) => packet.marker).length;
    const before = markers();
    const heldAgain = session.answerReoffer(answerFor(farEnd.port, 'a=sendonly\r\n'));
    const resumed = session.answerReoffer(answerFor(farEnd.port));
    const askedToOffer = session.offerAgain();
    await eventually(() => markers() > before, 'the gateway sends again after the hold');

    expect([held, heldAgain, resumed, askedToOffer].map(version)).toEqual(['2', '2', '3', '4']);
    expect(askedToOffer).toContain('RTP/AVP 0 8 101');
    expect(session.answerReoffer(answerFor(0))).toBeUndefined();
    session.close();
  });

  test('rejects an unusable answer', async () => {
    const { session } = await open();

    expect(session.applyAnswer('v=0\r\n', 'answer')).toBe('unusable');
    session.close();
  });

  test('contains a detector that throws within its own call', async () => {
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
    await eventually(
      () => healthy.observed.amd.length === 2,
      'detection of the healthy call reports its two events',
    );
    await eventually(
      () => throwing.observed.amd.length === 2,
      'detection of the other call reports its failure',
    );
    stop();

    const failed = ['amd_error', 'amd_stopped'];
    expect(throwing.observed.amd.map((event) => event.event)).toEqual(failed);
    expect(absent.observed.amd.map((event) => event.event)).toEqual(failed);
    for (const { session } of [throwing, absent, healthy]) session.close();
  });

  test('reports the closing events of detection even after the session was closed', async () => {
    const { observed, session } = await open();
    session.send({ kind: 'detect', settings: settingsFor() });
    session.send({ kind: 'stopDetection', reason: 'call-ended' });
    session.close();
    session.close();
    session.send({ kind: 'stopDetection', reason: 'plans-over' });
    await eventually(() => observed.amd.length > 0, 'detection reports its end');

    expect(observed.amd).toMatchObject([{ event: 'amd_stopped', reason: 'call-ended' }]);
  });
});

describe('a media port of its own', () => {
  /** Each test has its own ports. */
  const portAt = (offset: number) => ports.portMin + offset;
  const portsFrom = (first: number, last: number) => ({
    portMin: portAt(first),
    portMax: portAt(last),
  });

  const ports = forSuite(() => freePortRange(150));

  test('stops detection when a session closes; disposal waits for the closing events', async () => {
    const media = create(portsFrom(90, 99));
    const observed = observe();
    const session = await media.open(callId, observed);
    session?.send({ kind: 'detect', settings: settingsFor() });
    session?.close();
    await media[Symbol.asyncDispose]();

    expect(observed.amd.map((event) => event.reason)).toEqual(['session-closed']);
    expect(await media.open(callId, observed)).toBeUndefined();
  });

  test('reports a call without packets as inactive', async () => {
    await using media = create({ inactivityTimeoutMs: 200 });
    await using farEnd = await FarEnd.open();
    const observed = observe();
    const session = await media.open(callId, observed);
    session?.applyAnswer(answerFor(farEnd.port), 'answer');
    await eventually(() => observed.inactive > 0, 'inactivity is reported');

    expect(observed.inactive).toBe(1);
  });

  test('refuses a call if no port is free, and lets a closed port rest before it is used again', async () => {
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

  test('skips a port that another program holds', async () => {
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

  test('skips the ports of another gateway on the same range, however many they are', async () => {
    const range = portsFrom(100, 149);
    await using other = create(range);
    for (let call = 0; call < 20; call += 1) await other.open(callId, observe());
    await using media = create(range);

    const session = await media.open(callId, observe());

    expect(portOf(session?.offerSdp ?? '')).toBe(portAt(140));
  });

  test('refuses the call if the whole range is taken', async () => {
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

  test('distributes calls and ports over two workers', async () => {
    await using media = create({ ...portsFrom(30, 45), workers: 2 });
    await media.ready();
    const sessions = [];
    for (let call = 0; call < 8; call += 1) sessions.push(await media.open(callId, observe()));
    const ports = sessions.map((session) => portOf(session?.offerSdp ?? ''));

    expect(new Set(ports).size).toBe(8);
    expect((await media.statistics()).sessions).toBe(8);
    expect(await media.open(callId, observe())).toBeUndefined();
  });

  test('replaces a worker that dies, fails its calls and closes their detection', async () => {
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
    await eventually(
      () => bystander.failures.length > 0,
      'the other call of the worker reports its failure',
    );

    expect(killer.amd.map((event) => event.event)).toEqual(['amd_error', 'amd_stopped']);
    expect(killer.failures).toEqual(['media worker died']);
    expect(bystander.failures).toEqual(['media worker died']);
    expect(bystander.amd).toEqual([]);
    expect(ended.failures).toEqual([]);

    // The dead session does no harm. The new worker continues after the ports of the old one.
    expect(first?.applyAnswer(answerFor(4_000), 'answer')).toBe('applied');
    first?.send({ kind: 'detect', settings: settingsFor() });
    first?.send({ kind: 'stopDetection', reason: 'call-ended' });
    first?.close();
    const next = await media.open(callId, observe());
    expect(portOf(next?.offerSdp ?? '')).toBe(portAt(56));
  });

  test('opens no session if the worker cannot start, and can still be disposed', async () => {
    const media = create({ detectorModule: 'file:///nowhere/detector.ts' });
    const opening = media.open(callId, observe());
    await media[Symbol.asyncDispose]();

    expect(await opening).toBeUndefined();
  });

  test('carries audio over IPv6', async () => {
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
    expect(session?.applyAnswer(sdp, 'answer')).toBe('applied');
    session?.send({ kind: 'detect', settings: settingsFor(script.firstSound) });
    const stop = farEnd.stream(portOf(session?.offerSdp ?? ''), loud, '::1');
    await eventually(() => observed.amd.length === 2, 'detection reports its two events');
    stop();

    expect(farEnd.received.length).toBeGreaterThan(0);
  });

  test('rejects a public address that cannot be sent to, and a host that cannot be bound to', () => {
    expect(() => create({ host: 'localhost' })).toThrow('MEDIA_HOST');
    expect(() => create({ host: '0.0.0.0', publicHost: '0.0.0.0' })).toThrow('MEDIA_PUBLIC_HOST');
  });

  test('runs the detector of src/amd in the worker', async () => {
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
    await eventually(() => observed.amd.length === 2, 'detection reports its two events');
    await media[Symbol.asyncDispose]();

    expect(observed.amd.map((event) => event.event)).toEqual([
      'amd_no_speech_detected',
      'amd_stopped',
    ]);
  });
});
