// Compound RTCP packets (RFC 3550, section 6.1), read as far as a sign of life needs: is this datagram
// one, and who sent it. Reads without allocation, and never throws.
//
//   0                   1                   2                   3
//   |V=2|P|   RC    |  SR=200, RR=201   |  length in words, less one  |
//   |                      SSRC of the sender                         |

import { uint16, uint32 } from './rtp-packet.ts';

const senderReport = 200;
const receiverReport = 201;
const headerBytes = 4;
const ssrcBytes = 4;
/** The sender's clock, and what it has sent (section 6.4.1). */
const senderInfoBytes = 20;
const reportBlockBytes = 24;

/**
 * Returns the SSRC that sent a compound packet. Returns undefined if the datagram fails the checks of
 * RFC 3550, appendix A.2: it begins with a report that has no padding, each packet in it has version
 * 2, and their lengths add up to the datagram's.
 */
export function readRtcpSender(datagram: Uint8Array): number | undefined {
  if (!beginsWithReport(datagram)) return undefined;
  let at = 0;
  while (at < datagram.length) {
    if (!hasHeaderAt(datagram, at)) return undefined;
    at += packetBytes(datagram, at);
  }
  return at === datagram.length ? uint32(datagram, headerBytes) : undefined;
}

/** The first packet has the room that its own counts need. */
function beginsWithReport(datagram: Uint8Array): boolean {
  if (datagram.length < headerBytes + ssrcBytes) return false;
  const first = datagram[0] as number;
  const type = datagram[1];
  const hasPadding = (first & 0x20) !== 0;
  if (hasPadding || (type !== senderReport && type !== receiverReport)) return false;
  const infoBytes = type === senderReport ? senderInfoBytes : 0;
  const blockBytes = (first & 0x1f) * reportBlockBytes;
  return packetBytes(datagram, 0) >= headerBytes + ssrcBytes + infoBytes + blockBytes;
}

function hasHeaderAt(datagram: Uint8Array, at: number): boolean {
  return at + headerBytes <= datagram.length && (datagram[at] as number) >> 6 === 2;
}

function packetBytes(datagram: Uint8Array, at: number): number {
  return (uint16(datagram, at + 2) + 1) * 4;
}
