// Parses the far end's SDP (RFC 4566). To protect ourselves, we limit the input, and read only the
// lines that telephone audio needs. Parsing never throws. A general parser and a schema for its
// result took 2 % of a call's CPU time on the main thread.

import ipaddr from 'ipaddr.js';

/** In practice, a description for audio is under 2 kB, and one for WebRTC is under 10 kB. */
const maxSdpCharacters = 16_384;
/** Lines longer than this are WebRTC candidates, or fmtp lines for codecs that we don't support. */
const maxLineCharacters = 512;
const maxLines = 400;
/** Two suites need two lines. Some far ends offer every suite that they know. */
const maxCryptoLines = 16;
/**
 * Audio, fax and video only need three lines. We limit the number because our answer repeats every
 * line in the offer.
 */
const maxMediaLines = 16;
const maxPort = 65_535;

export type Direction = 'sendrecv' | 'sendonly' | 'recvonly' | 'inactive';

export type SdpAddress = { readonly version: 4 | 6; readonly address: string };
/**
 * `unreadable` means that the host is a name or an invalid address, so there's no address that we
 * could send to.
 */
export type SdpConnection = SdpAddress | 'unreadable';

export type SdpMedia = {
  /**
   * Media type from the m= line, e.g. `audio`. If our answer rejects the line, it repeats the type.
   */
  readonly type: string;
  readonly port: number;
  readonly protocol: string;
  /** Formats as written in the m= line, e.g. `0 8 101`. */
  readonly formats: string;
  readonly connection?: SdpConnection;
  readonly direction?: Direction;
  /** The port from `a=rtcp`, and the host if that line contains one. */
  readonly rtcp?: { readonly port: number; readonly connection?: SdpConnection };
  /** True if RTCP may use the port of RTP (RFC 5761). */
  readonly rtcpMux: boolean;
  readonly rtpmaps: readonly {
    readonly payloadType: number;
    readonly encoding: string;
    readonly clockRateHz?: number;
  }[];
  /** The longest packet that the far end accepts, from `a=maxptime`. */
  readonly maxPacketMs?: number;
  /** The values of `a=crypto`, in order. */
  readonly crypto: readonly string[];
};

export type Sdp = {
  readonly connection?: SdpConnection;
  readonly direction?: Direction;
  readonly media: readonly SdpMedia[];
};

type Mutable<Type> = { -readonly [Name in keyof Type]: Type[Name] };
/** An m= line and the lines below it, or the lines above the first one. */
type Section = Mutable<Omit<SdpMedia, 'rtpmaps' | 'crypto'>> & {
  readonly rtpmaps: SdpMedia['rtpmaps'][number][];
  readonly crypto: string[];
};

/** @returns undefined if the text isn't a session description, or exceeds the limits */
export function parseSdp(text: string): Sdp | undefined {
  if (text.length > maxSdpCharacters) return undefined;
  const lines = text.split(/\r\n|\r|\n/);
  if (lines.length > maxLines || lines[0]?.trim() !== 'v=0') return undefined;
  const [session, ...media] = readSections(
    lines.filter(({ length }) => length <= maxLineCharacters),
  );
  if (session === undefined || media.length > maxMediaLines) return undefined;
  const { connection, direction } = session;
  return {
    ...(connection === undefined ? {} : { connection }),
    ...(direction === undefined ? {} : { direction }),
    media,
  };
}

/** @returns no section if an m= line is malformed, because our answer would have to repeat it */
function readSections(lines: readonly string[]): readonly Section[] {
  let section = newSection('', 0, '');
  const sections = [section];
  for (const line of lines) {
    if (!line.startsWith('m=')) {
      readLine(line.trimEnd(), section);
      continue;
    }
    const next = readMediaLine(line);
    if (next === undefined) return [];
    sections.push(next);
    section = next;
  }
  return sections;
}

function newSection(type: string, port: number, protocol: string, formats = ''): Section {
  return { type, port, protocol, formats, rtcpMux: false, rtpmaps: [], crypto: [] };
}

const mediaLine = /^m=(\w+) +(\d+)(?:\/\d+)? +([\w/]*)(?: +(.*))?/;

/** @returns undefined if the line is malformed */
function readMediaLine(line: string): Section | undefined {
  const [, type = '', port, protocol = '', formats = ''] = mediaLine.exec(line) ?? [];
  const number = canonicalNumber(port, maxPort);
  if (number === undefined) return undefined;
  // If our answer rejects the line, it repeats these formats, so keep only printable characters.
  const printable = formats.replaceAll(/[^\x20-\x7e]/g, '').replaceAll(/ +/g, ' ');
  return newSection(type, number, protocol, printable.trim());
}

/** The lines that telephone audio needs, each with its value. */
const usedLine =
  /^(c=|a=(?:rtpmap|rtcp|rtcp-mux|crypto|maxptime|sendrecv|sendonly|recvonly|inactive)(?=[:\s]|$)):?(.*)/;

function readLine(line: string, section: Section): void {
  const [, kind = '', value = ''] = usedLine.exec(line) ?? [];
  switch (kind) {
    case 'c=':
      readConnection(value, section);
      break;
    case 'a=rtpmap':
      section.rtpmaps.push(...readRtpmap(value));
      break;
    case 'a=rtcp':
      readRtcp(value, section);
      break;
    case 'a=rtcp-mux':
      section.rtcpMux = true;
      break;
    case 'a=crypto':
      if (section.crypto.length < maxCryptoLines) section.crypto.push(...readCrypto(value));
      break;
    case 'a=maxptime':
      readMaxPacket(value, section);
      break;
    case 'a=sendrecv':
    case 'a=sendonly':
    case 'a=recvonly':
    case 'a=inactive':
      section.direction = directionOf[kind];
      break;
  }
}

const directionOf = {
  'a=sendrecv': 'sendrecv',
  'a=sendonly': 'sendonly',
  'a=recvonly': 'recvonly',
  'a=inactive': 'inactive',
} as const;

function readConnection(value: string, section: Section): void {
  const address = /^IN IP\d (\S*)/.exec(value)?.[1];
  if (address !== undefined) section.connection = readAddress(address) ?? 'unreadable';
}

function readMaxPacket(value: string, section: Section): void {
  const maxPacketMs = canonicalNumber(/^[\d.]+/.exec(value)?.[0], Infinity) ?? 0;
  if (maxPacketMs > 0) section.maxPacketMs = maxPacketMs;
}

function readRtpmap(value: string): SdpMedia['rtpmaps'] {
  const [, payload, codec = '', rate] = /^(\d+) ([\w\-.]*)(?:\s*\/(\d*))?/.exec(value) ?? [];
  const payloadType = canonicalNumber(payload, 127);
  if (payloadType === undefined) return [];
  const clockRateHz = canonicalNumber(rate, Infinity) ?? 0;
  const encoding = codec.toLowerCase();
  return [{ payloadType, encoding, ...(clockRateHz > 0 ? { clockRateHz } : {}) }];
}

function readRtcp(value: string, section: Section): void {
  const [, text, address] = /^(\d+)(?: \S* IP\d (\S*))?/.exec(value) ?? [];
  const port = canonicalNumber(text, maxPort);
  if (port === undefined) return;
  const connection = address === undefined ? undefined : (readAddress(address) ?? 'unreadable');
  section.rtcp = { port, ...(connection === undefined ? {} : { connection }) };
}

/** Returns the tag, the suite, the key and its parameters, with one space between them. */
function readCrypto(value: string): readonly string[] {
  return /^\d* +\w+ +\S/.test(value) ? [value.replaceAll(/ +/g, ' ')] : [];
}

/** Reads a number that is written as RFC 4566 wants it, e.g. without leading zeroes. */
function canonicalNumber(text: string | undefined, max: number): number | undefined {
  const number = Number(text);
  return String(number) === text && number <= max ? number : undefined;
}

/**
 * Reads an IP literal and normalises it to the form in which sockets report addresses. Names are
 * rejected, because we can't wait for DNS in the middle of an answer.
 */
function readAddress(text: string): SdpAddress | undefined {
  // The `/127` in `224.2.1.1/127` is a multicast time-to-live. Some senders add one to unicast
  // addresses, too.
  const [literal = ''] = text.split('/');
  if (ipaddr.IPv4.isValidFourPartDecimal(literal)) {
    return { version: 4, address: ipaddr.IPv4.parse(literal).toString() };
  }
  if (!ipaddr.IPv6.isValid(literal)) return undefined;
  const parsed = ipaddr.IPv6.parse(literal);
  if (parsed.isIPv4MappedAddress()) {
    return { version: 4, address: parsed.toIPv4Address().toString() };
  }
  return { version: 6, address: parsed.toRFC5952String() };
}

/** Returns true for `0.0.0.0` and `::`, which mean "send no media" in RFC 2543. */
export function isUnspecified(address: SdpAddress): boolean {
  return address.address === '0.0.0.0' || address.address === '::';
}

/**
 * Checks that the address belongs to a single host, because we never send media to multicast or
 * broadcast addresses.
 */
export function isUnicast(address: SdpAddress): boolean {
  const range = ipaddr.parse(address.address).range();
  return range !== 'multicast' && range !== 'broadcast' && range !== 'unspecified';
}
