// Parses the far end's SDP (RFC 4566) with sdp-transform. To protect ourselves, we limit the input,
// keep only the lines that telephone audio needs, and validate the result. Parsing never throws.

import ipaddr from 'ipaddr.js';
import { parse } from 'sdp-transform';
import { z } from 'zod';

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

const usedLines =
  /^(?:[ocm]=|v=|a=(?:rtpmap|rtcp|rtcp-mux|crypto|maxptime|sendrecv|sendonly|recvonly|inactive)(?=[:\s]|$)|t=)/;

export const directions = ['sendrecv', 'sendonly', 'recvonly', 'inactive'] as const;
export type Direction = (typeof directions)[number];

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

const portNumber = z.number().int().min(0).max(65_535);
const payloadNumber = z.number().int().min(0).max(127);
const connection = z.object({ version: z.number(), ip: z.coerce.string() }).optional();
const direction = z.enum(directions).optional().catch(undefined);

const rtpmap = z.object({
  payload: payloadNumber,
  codec: z.coerce.string(),
  rate: z.number().int().positive().optional().catch(undefined),
});

const rtcp = z
  .object({ port: portNumber, address: z.coerce.string().optional() })
  .optional()
  .catch(undefined);

const crypto = z.object({
  id: z.coerce.string(),
  suite: z.coerce.string(),
  config: z.coerce.string(),
  sessionConfig: z.coerce.string().default(''),
});

const media = z.object({
  type: z.string(),
  port: portNumber,
  protocol: z.string(),
  payloads: z.coerce.string().default(''),
  connection: connection.catch(undefined),
  direction,
  rtcp,
  rtcpMux: z.literal('rtcp-mux').optional().catch(undefined),
  rtp: z.array(z.unknown()).default([]),
  maxptime: z.number().positive().optional().catch(undefined),
  crypto: z.array(crypto).default([]).catch([]),
});

const description = z.object({
  connection: connection.catch(undefined),
  direction,
  media: z.array(media).max(maxMediaLines),
});

/** @returns undefined if the text isn't a session description, or exceeds the limits */
export function parseSdp(text: string): Sdp | undefined {
  if (text.length > maxSdpCharacters) return undefined;
  const lines = text.split(/\r\n|\r|\n/);
  if (lines.length > maxLines || lines[0]?.trim() !== 'v=0') return undefined;
  const kept = lines
    .filter((line) => line.length <= maxLineCharacters && usedLines.test(line))
    .map(normaliseLine);
  const parsed = description.safeParse(parseQuietly(kept.join('\r\n')));
  if (!parsed.success) return undefined;
  return {
    ...optionalConnection(parsed.data.connection),
    ...optionalDirection(parsed.data.direction),
    media: parsed.data.media.map(toMedia),
  };
}

/** Adapts a line to the library's grammar, which is stricter than what carriers actually send. */
function normaliseLine(line: string): string {
  const trimmed = line.trimEnd();
  // sdp-transform doesn't support the number of ports in `m=audio 4000/1 RTP/AVP 0`.
  if (trimmed.startsWith('m=')) {
    return trimmed.replace(/^(m=\S+ \d+)\/\d+ /, '$1 ').replace(/ +/g, ' ');
  }
  // sdp-transform keeps only the first of several parameters after the key.
  if (trimmed.startsWith('a=crypto:')) {
    const [tag = '', suite = '', key = '', ...parameters] = trimmed.split(/ +/);
    return `${tag} ${suite} ${key} ${parameters.join(parameterSeparator)}`.trimEnd();
  }
  return trimmed;
}

const parameterSeparator = ',';

function parseQuietly(text: string): unknown {
  try {
    return parse(`${text}\r\n`);
  } catch {
    return undefined;
  }
}

function toMedia(line: z.infer<typeof media>): SdpMedia {
  return {
    type: line.type,
    port: line.port,
    protocol: line.protocol,
    // If our answer rejects the line, it repeats these formats, so keep only printable characters.
    formats: line.payloads.replaceAll(/[^\x20-\x7e]/g, '').trim(),
    ...optionalConnection(line.connection),
    ...optionalDirection(line.direction),
    ...optionalRtcp(line.rtcp),
    ...(line.maxptime === undefined ? {} : { maxPacketMs: line.maxptime }),
    rtcpMux: line.rtcpMux !== undefined,
    rtpmaps: line.rtp.flatMap((entry) => {
      const map = rtpmap.safeParse(entry);
      if (!map.success) return [];
      const { payload, codec, rate } = map.data;
      return [
        {
          payloadType: payload,
          encoding: codec.toLowerCase(),
          ...(rate === undefined ? {} : { clockRateHz: rate }),
        },
      ];
    }),
    crypto: line.crypto
      .slice(0, maxCryptoLines)
      .map(({ id, suite, config, sessionConfig }) =>
        [id, suite, config, ...sessionConfig.split(parameterSeparator)].join(' ').trimEnd(),
      ),
  };
}

function optionalDirection(value: Direction | undefined): { direction?: Direction } {
  return value === undefined ? {} : { direction: value };
}

function optionalRtcp(value: z.infer<typeof rtcp>): Pick<SdpMedia, 'rtcp'> {
  if (value === undefined) return {};
  const { port, address } = value;
  const connection = address === undefined ? undefined : (readAddress(address) ?? 'unreadable');
  return { rtcp: { port, ...(connection === undefined ? {} : { connection }) } };
}

function optionalConnection(value: z.infer<typeof connection>): { connection?: SdpConnection } {
  return value === undefined ? {} : { connection: readAddress(value.ip) ?? 'unreadable' };
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
