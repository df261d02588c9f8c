import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { CallId } from '../../src/calls/call-types.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { createMediaPort, type MediaGateway } from '../../src/media/media-port.ts';
import { parseSdp } from '../../src/media/sdp-parse.ts';
import { FarEnd } from './support/far-end.ts';
import { observe, settingsFor, until } from './support/observed.ts';
import { script } from './support/scripted-detector.ts';

const callId = 'call-0' as CallId;
const detectorModule = new URL('./support/scripted-detector.ts', import.meta.url).href;
const loud = 0x10;

function answerFor(port: number, extra = ''): string {
  return `v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio ${port} RTP/AVP 0 101\r\na=rtpmap:101 telephone-event/8000\r\n${extra}`;
}

function portOf(offerSdp: string): number {
  return parseSdp(offerSdp)?.media[0]?.port ?? 0;
}

function create(options: Partial<Parameters<typeof createMediaPort>[0]> = {}): MediaGateway {
  return createMediaPort({
    host: '127.0.0.1',
    publicHost: '127.0.0.1',
    portMin: 31_000,
    portMax: 31_199,
    workers: 1,
    inactivityTimeoutMs: 60_000,
    logger: silentLogger,
    detectorModule,
    ...options,
  });
}

describe('media port', () => {
  let media: MediaGateway;

  beforeAll(async () => {
    media = create();
    expect(await media.ready()).toBe(true);
  });

  afterAll(async () => {
    await media[Symbol.asyncDispose]();
  });

  test('a call is offered, answered, hears silence and is heard by the detector', async () => {
    await using farEnd = await FarEnd.open();
    const observed = observe();
    const session = await media.open(callId, observed);
    if (session === undefined) throw new Error('no session');
    const port = portOf(session.offerSdp);

    expect(port % 2).toBe(0);
    expect(session.applyAnswer(answerFor(farEnd.port), 'answer')).toBe(true);
    session.startDetection(settingsFor(script.firstSound));
    await until(() => farEnd.received.length >= 5, 'silence from the gateway');
    const stop = farEnd.stream(port, loud);
    await until(() => observed.amd.length === 2, 'detection');
    stop();

    expect(observed.amd.map((event) => event.event)).toEqual(['amd_human_detected', 'amd_stopped']);
    const [first, second] = farEnd.received;
    expect(first?.marker).toBe(true);
    expect(second?.marker).toBe(false);
    expect(first?.fromPort).toBe(port);
    expect(first?.payload.equals(Buffer.alloc(160, 0xff))).toBe(true);
    expect(second?.ssrc).toBe(first?.ssrc);
    session.close();
  });
});
