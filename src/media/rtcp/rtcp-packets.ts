// Writes and reads compound RTCP packets (RFC 3550, section 6). Reading never throws.

import { uint16, uint32 } from '../rtp/rtp-packet.ts';
import type { ReceptionReport } from './reception-statistics.ts';

const senderReport = 200;
const receiverReport = 201;
const sourceDescription = 202;
const goodbye = 203;
const reportBlockBytes = 24;
const senderInfoBytes = 20;
const headerBytes = 8;
/** Seconds from 1900, where NTP's clock begins, to 1970. */
const ntpOffsetS = 2_208_988_800;
const maxLost = 0x7f_ffff;

/** A point in time as NTP writes it: seconds since 1900, and a fraction of 2^32. */
export type NtpTime = { readonly seconds: number; readonly fraction: number };

export function ntpTimeOf(ms: number): NtpTime {
  const seconds = Math.floor(ms / 1_000);
  const fraction = Math.floor(((ms - seconds * 1_000) / 1_000) * 0x1_0000_0000);
  return { seconds: (seconds + ntpOffsetS) >>> 0, fraction: fraction >>> 0 };
}

/** The middle 32 bits, in 65536ths of a second, by which reports refer to each other. */
export function middleOf({ seconds, fraction }: NtpTime): number {
  return (((seconds & 0xffff) << 16) | (fraction >>> 16)) >>> 0;
}

export type OurReport = {
  readonly ssrc: number;
  /** The name of our side, which stays the same for the call (RFC 7022). */
  readonly cname: string;
  /** Undefined unless we've sent packets since the report before the last (section 6.4). */
  readonly sent?: {
    readonly at: NtpTime;
    readonly rtpTimestamp: number;
    readonly packets: number;
    readonly bytes: number;
  };
  /** Undefined as long as nothing has arrived. */
  readonly received?: ReceptionReport & {
    readonly ssrc: number;
    /** `middleOf` the far end's last report, and how long ago it arrived (in 65536ths of 1 s). */
    readonly lastReport: number;
    readonly sinceLastReport: number;
  };
  /** True for the last report of the call. */
  readonly isLast: boolean;
};

export function writeReport(report: OurReport): Uint8Array {
  const parts = [reportPart(report), descriptionPart(report)];
  if (report.isLast) parts.push(goodbyePart(report.ssrc));
  return Buffer.concat(parts);
}

function reportPart({ ssrc, sent, received }: OurReport): Buffer {
  const infoBytes = sent === undefined ? 0 : senderInfoBytes;
  const part = Buffer.alloc(headerBytes + infoBytes + (received ? reportBlockBytes : 0));
  writeHeader(part, received ? 1 : 0, sent === undefined ? receiverReport : senderReport);
  part.writeUInt32BE(ssrc, 4);
  if (sent !== undefined) {
    part.writeUInt32BE(sent.at.seconds, 8);
    part.writeUInt32BE(sent.at.fraction, 12);
    part.writeUInt32BE(sent.rtpTimestamp, 16);
    part.writeUInt32BE(sent.packets >>> 0, 20);
    part.writeUInt32BE(sent.bytes >>> 0, 24);
  }
  if (received !== undefined) {
    const at = headerBytes + infoBytes;
    const lost = Math.max(-maxLost - 1, Math.min(maxLost, received.packetsLost));
    part.writeUInt32BE(received.ssrc, at);
    part.writeUInt32BE(((received.fractionLost << 24) | (lost & 0xff_ffff)) >>> 0, at + 4);
    part.writeUInt32BE(received.highestSequence, at + 8);
    part.writeUInt32BE(received.jitter >>> 0, at + 12);
    part.writeUInt32BE(received.lastReport, at + 16);
    part.writeUInt32BE(received.sinceLastReport, at + 20);
  }
  return part;
}

function descriptionPart({ ssrc, cname }: OurReport): Buffer {
  const name = Buffer.from(cname, 'latin1');
  // The list of items ends with a zero, and is padded with more to a multiple of four.
  const items = Math.ceil((2 + name.length + 1) / 4) * 4;
  const part = Buffer.alloc(headerBytes + items);
  writeHeader(part, 1, sourceDescription);
  part.writeUInt32BE(ssrc, 4);
  part[8] = 1;
  part[9] = name.length;
  name.copy(part, 10);
  return part;
}

function goodbyePart(ssrc: number): Buffer {
  const part = Buffer.alloc(headerBytes);
  writeHeader(part, 1, goodbye);
  part.writeUInt32BE(ssrc, 4);
  return part;
}

function writeHeader(part: Buffer, count: number, type: number): void {
  part[0] = 0x80 | count;
  part[1] = type;
  part.writeUInt16BE(part.length / 4 - 1, 2);
}

/** What the far end reports. */
export type TheirReport = {
  /** The sender, and `middleOf` its clock. Undefined if it isn't a sender's report. */
  readonly sentAt?: { readonly ssrc: number; readonly middle: number };
  /** What it heard of us. Undefined if it has no report block about our SSRC. */
  readonly heard?: {
    readonly fractionLost: number;
    readonly packetsLost: number;
    /** The highest sequence number, with the number of its wraps in the upper 16 bits. */
    readonly highestSequence: number;
    /** In timestamp units. */
    readonly jitter: number;
    /** `middleOf` our report that it refers to. 0 if it has received none. */
    readonly lastReport: number;
    /** In 65536ths of a second. */
    readonly sinceLastReport: number;
  };
};

/**
 * Reads a compound packet that `readRtcpSender` has accepted.
 *
 * @param ourSsrc the SSRC of the packets that we send
 */
export function readReports(datagram: Uint8Array, ourSsrc: number): TheirReport {
  let found: TheirReport = {};
  let at = 0;
  while (at + headerBytes <= datagram.length) {
    const end = at + (uint16(datagram, at + 2) + 1) * 4;
    if (end > datagram.length) break;
    found = { ...found, ...readReport(datagram.subarray(at, end), ourSsrc) };
    at = end;
  }
  return found;
}

function readReport(packet: Uint8Array, ourSsrc: number): TheirReport {
  const type = packet[1];
  if (type !== senderReport && type !== receiverReport) return {};
  const isSender = type === senderReport;
  const blocks = (packet[0] as number) & 0x1f;
  let at = headerBytes + (isSender ? senderInfoBytes : 0);
  if (at > packet.length) return {};
  const sentAt = isSender
    ? { sentAt: { ssrc: uint32(packet, 4), middle: uint32(packet, 10) } }
    : {};
  for (let block = 0; block < blocks && at + reportBlockBytes <= packet.length; block += 1) {
    if (uint32(packet, at) === ourSsrc) return { ...sentAt, heard: readBlock(packet, at) };
    at += reportBlockBytes;
  }
  return sentAt;
}

function readBlock(packet: Uint8Array, at: number): NonNullable<TheirReport['heard']> {
  return {
    fractionLost: packet[at + 4] as number,
    // 24 bits, signed: duplicates can make it negative.
    packetsLost: (uint32(packet, at + 4) << 8) >> 8,
    highestSequence: uint32(packet, at + 8),
    jitter: uint32(packet, at + 12),
    lastReport: uint32(packet, at + 16),
    sinceLastReport: uint32(packet, at + 20),
  };
}
