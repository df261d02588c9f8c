// Reads and writes the fixed RTP header (RFC 3550, section 5.1), and reads the sender's SSRC from
// an RTCP packet. Nothing here allocates memory or throws.
//
//   0                   1                   2                   3
//   |V=2|P|X|  CC   |M|     PT      |       sequence number         |
//   |                           timestamp                           |
//   |                             SSRC                              |
//   |                     CSRC × CC, extension                      |

export const rtpHeaderBytes = 12;

/** The result of `readRtp`. We reuse one object for all packets. */
export type RtpHeader = {
  payloadType: number;
  marker: boolean;
  sequence: number;
  timestamp: number;
  ssrc: number;
  /** The payload is `packet.subarray(payloadStart, payloadEnd)`, without padding. */
  payloadStart: number;
  payloadEnd: number;
};

export function createRtpHeader(): RtpHeader {
  return {
    payloadType: 0,
    marker: false,
    sequence: 0,
    timestamp: 0,
    ssrc: 0,
    payloadStart: 0,
    payloadEnd: 0,
  };
}

/**
 * Reads the fixed header into `header`.
 * @returns false if the bytes aren't an RTP packet, in which case `header` isn't valid
 */
export function readRtp(packet: Uint8Array, header: RtpHeader): boolean {
  if (packet.length < rtpHeaderBytes) return false;
  const first = packet[0] as number;
  if (first >> 6 !== 2) return false;
  const second = packet[1] as number;
  header.marker = (second & 0x80) !== 0;
  header.payloadType = second & 0x7f;
  header.sequence = uint16(packet, 2);
  header.timestamp = uint32(packet, 4);
  header.ssrc = uint32(packet, 8);
  return findPayload(packet, first, header);
}

/** Reads the timestamp of a packet that is known to be RTP. */
export function readTimestamp(packet: Uint8Array): number {
  return uint32(packet, 4);
}

/**
 * Returns where the payload of `packet[0, end)` begins, after the CSRCs and the extension, which
 * SRTP doesn't encrypt.
 * @returns -1 if the bytes aren't an RTP packet
 */
export function payloadStartOf(packet: Uint8Array, end = packet.length): number {
  if (end < rtpHeaderBytes) return -1;
  const first = packet[0] as number;
  if (first >> 6 !== 2) return -1;
  let start = rtpHeaderBytes + (first & 0x0f) * 4;
  if ((first & 0x10) !== 0) {
    if (end < start + 4) return -1;
    start += 4 + uint16(packet, start + 2) * 4;
  }
  return start <= end ? start : -1;
}

function findPayload(packet: Uint8Array, first: number, header: RtpHeader): boolean {
  const start = payloadStartOf(packet);
  if (start < 0) return false;
  let end = packet.length;
  if ((first & 0x20) !== 0) {
    const padding = packet[end - 1] as number;
    // The padding count includes itself, so zero is invalid (RFC 3550, appendix A.1).
    if (padding === 0) return false;
    end -= padding;
  }
  if (start > end) return false;
  header.payloadStart = start;
  header.payloadEnd = end;
  return true;
}

export type RtpFields = {
  readonly payloadType: number;
  readonly marker: boolean;
  readonly sequence: number;
  readonly timestamp: number;
  readonly ssrc: number;
};

/** Writes the fixed header into the first 12 bytes. Out-of-range numbers wrap around. */
export function writeRtpHeader(packet: Uint8Array, fields: RtpFields): void {
  packet[0] = 0x80;
  packet[1] = (fields.marker ? 0x80 : 0) | fields.payloadType;
  packet[2] = fields.sequence >>> 8;
  packet[3] = fields.sequence;
  putUint32(packet, 4, fields.timestamp);
  putUint32(packet, 8, fields.ssrc);
}

/** Reads two bytes. Check the bounds before you call this. */
export function uint16(bytes: Uint8Array, at: number): number {
  return ((bytes[at] as number) << 8) | (bytes[at + 1] as number);
}

/** Reads four bytes. Check the bounds before you call this. */
export function uint32(bytes: Uint8Array, at: number): number {
  return ((uint16(bytes, at) << 16) | uint16(bytes, at + 2)) >>> 0;
}

function putUint32(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >>> 24;
  bytes[at + 1] = value >>> 16;
  bytes[at + 2] = value >>> 8;
  bytes[at + 3] = value;
}

/** Returns how far `a` is ahead of `b` on the 32-bit circle. Negative if `a` is behind. */
export function timestampDistance(a: number, b: number): number {
  return (a - b) | 0;
}

/** Returns how far `a` is ahead of `b` on the 16-bit circle. Negative if `a` is behind. */
export function sequenceDistance(a: number, b: number): number {
  return ((a - b) << 16) >> 16;
}

// Compound RTCP packets (section 6.1). We use them only as a sign of life, so we check that a
// datagram is valid, read its sender, and ignore everything else.
//
//   0                   1                   2                   3
//   |V=2|P|   RC    |  SR=200, RR=201   |  length in words, less one  |
//   |                      SSRC of the sender                         |

/**
 * Tells RTCP from RTP on the same port by the packet's type, which SRTP doesn't encrypt (RFC 5761,
 * section 4).
 */
export function isRtcp(datagram: Uint8Array): boolean {
  const type = datagram[1] ?? 0;
  return type >= 192 && type <= 223;
}

const senderReport = 200;
const receiverReport = 201;
const rtcpHeaderBytes = 4;
const ssrcBytes = 4;
/** The sender's clock and its packet counts (section 6.4.1). */
const senderInfoBytes = 20;
const reportBlockBytes = 24;

/**
 * Returns the SSRC that sent a compound packet. The datagram must pass the checks in RFC 3550,
 * appendix A.2: it starts with a report without padding, each of its packets has version 2, and the
 * packets' lengths add up to the datagram's length.
 * @returns undefined if a check fails
 */
export function readRtcpSender(datagram: Uint8Array): number | undefined {
  if (!beginsWithReport(datagram)) return undefined;
  let at = 0;
  while (at < datagram.length) {
    if (!hasHeaderAt(datagram, at)) return undefined;
    at += packetBytes(datagram, at);
  }
  return at === datagram.length ? uint32(datagram, rtcpHeaderBytes) : undefined;
}

/**
 * Checks that the datagram starts with a report, and that the report is at least as long as its own
 * counts require.
 */
function beginsWithReport(datagram: Uint8Array): boolean {
  if (datagram.length < rtcpHeaderBytes + ssrcBytes) return false;
  const first = datagram[0] as number;
  const type = datagram[1];
  const hasPadding = (first & 0x20) !== 0;
  if (hasPadding || (type !== senderReport && type !== receiverReport)) return false;
  const infoBytes = type === senderReport ? senderInfoBytes : 0;
  const blockBytes = (first & 0x1f) * reportBlockBytes;
  return packetBytes(datagram, 0) >= rtcpHeaderBytes + ssrcBytes + infoBytes + blockBytes;
}

function hasHeaderAt(datagram: Uint8Array, at: number): boolean {
  return at + rtcpHeaderBytes <= datagram.length && (datagram[at] as number) >> 6 === 2;
}

function packetBytes(datagram: Uint8Array, at: number): number {
  return (uint16(datagram, at + 2) + 1) * 4;
}
