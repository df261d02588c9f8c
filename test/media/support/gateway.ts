// A media port with the scripted detector, and the SDP that answers its calls.

import type { CallId } from '../../../src/calls/contract/identity.ts';
import { silentLogger } from '../../../src/lib/logger.ts';
import { createMediaPort, type MediaGateway } from '../../../src/media/media-port.ts';
import { parseSdp } from '../../../src/media/sdp-parse.ts';

export const callId = 'call-0' as CallId;
const detectorModule = new URL('./scripted-detector.ts', import.meta.url).href;

export function answerFor(port: number, extra = ''): string {
  return `v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio ${port} RTP/AVP 0 101\r\na=rtpmap:101 telephone-event/8000\r\n${extra}`;
}

export function portOf(offerSdp: string): number {
  return parseSdp(offerSdp)?.media[0]?.port ?? 0;
}

/** Waits until no packet has been sent for the time of five packets. */
export async function untilQuiet(media: MediaGateway): Promise<void> {
  for (let before = -1, sent = 0; before !== sent; ) {
    before = (await media.statistics()).packetsSent;
    await new Promise((resolve) => setTimeout(resolve, 100));
    sent = (await media.statistics()).packetsSent;
  }
}

export function createScripted(
  options: Partial<Parameters<typeof createMediaPort>[0]> = {},
): MediaGateway {
  return createMediaPort({
    host: '127.0.0.1',
    publicHost: '127.0.0.1',
    portMin: 31_000,
    portMax: 31_199,
    workers: 1,
    inactivityTimeoutMs: 60_000,
    silenceIntervalMs: 20,
    logger: silentLogger,
    detectorModule,
    ...options,
  });
}
