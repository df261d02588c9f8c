// A session whose far end may encrypt its audio, and the packets of that far end.

import { writeRtpHeader } from '../../../src/media/rtp/rtp-packet.ts';
import { RtpSession } from '../../../src/media/rtp/rtp-session.ts';
import { createRtpCounts, createRtpScratch } from '../../../src/media/rtp/rtp-session-ports.ts';
import type { SrtpKeys } from '../../../src/media/srtp/negotiation.ts';
import { newCryptoLines } from '../../../src/media/srtp/sdes.ts';
import type { SrtpKey } from '../../../src/media/srtp/srtp-keys.ts';
import { createDetector } from '../support/scripted-detector.ts';
import { remote } from '../support/session-bench.ts';

export const newKey = (): SrtpKey => (newCryptoLines()[0] as { readonly key: SrtpKey }).key;
export const farEndAddress = [remote.address, remote.port] as const;

/** @param keys undefined for a leg without encryption */
export function openLeg(keys?: SrtpKeys) {
  const sent: Uint8Array[] = [];
  const reports: Uint8Array[] = [];
  const counts = createRtpCounts();
  const session = new RtpSession(
    {
      createDetector,
      ...{ inactivityFrames: 1_000, silenceFrames: 1, scratch: createRtpScratch(), counts },
      ...{ ssrc: 0xcafe, firstSequence: 32_767, firstTimestamp: 7, cname: 'us' },
    },
    {
      send: (packet) => sent.push(packet.slice()),
      sendRtcp: (packet) => reports.push(packet),
      connect: () => undefined,
      disconnect: () => undefined,
      report: () => undefined,
      onDetectorError: () => undefined,
      onRecorderError: () => undefined,
    },
  );
  session.applyRemote({ ...remote, ...(keys !== undefined && { srtp: keys }) }, 'answer');
  return { session, sent, reports, counts };
}

export function packet(index: number, { ssrc = 7 } = {}): Uint8Array {
  const bytes = Uint8Array.from({ length: 172 }, (_, at) => (at * index) & 0xff);
  const fields = { payloadType: 0, marker: false, timestamp: index * 160, ssrc };
  writeRtpHeader(bytes, { ...fields, sequence: (500 + index) & 0xffff });
  return bytes;
}
