// SDP (RFC 4566) of the far end, read with sdp-transform: bounded, reduced to the lines that telephone audio needs, and
// never throwing. What comes out is checked: numbers are numbers, addresses are addresses.

import ipaddr from 'ipaddr.js';
import { parse } from 'sdp-transform';
import { z } from 'zod';

/** Real audio descriptions have under 2 kB, WebRTC's under 10 kB. */
const maxSdpCharacters = 16_384;
/** Long lines are fmtp and candidates of codecs that we do not speak. */
const maxLineCharacters = 512;
const maxLines = 400;
/** Fax and video beside audio make three; an answer must repeat them all. */
const maxMediaLines = 16;

const usedLines =
  /^(?:[ocm]=|v=|a=(?:rtpmap|rtcp|sendrecv|sendonly|recvonly|inactive)(?=[:\s]|$)|t=)/;

export const directions = ['sendrecv', 'sendonly', 'recvonly', 'inactive'] as const;
export type Direction = (typeof directions)[number];

export type SdpAddress = { readonly version: 4 | 6; readonly address: string };
/** A host name, or rubbish: there is a connection line, but nowhere to send to. */
export type SdpConnection = SdpAddress | 'unreadable';

export type SdpMedia = {
  /** The m= line's own words, for an answer that must refuse it. */
  readonly type: string;
  readonly port: number;
  readonly protocol: string;
  /** As written, e.g. `0 8 101`. */
  readonly formats: string;
  readonly connection?: SdpConnection;
  readonly direction?: Direction;
  /** `a=rtcp`, with a host if it names one. */
  readonly rtcp?: { readonly port: number; readonly connection?: SdpConnection };
  readonly rtpmaps: readonly {
    readonly payloadType: number;
    readonly encoding: string;
    readonly clockRateHz?: number;
  }[];
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

const media = z.object({
  type: z.string(),
  port: portNumber,
  protocol: z.string(),
  payloads: z.coerce.string().default(''),
  connection: connection.catch(undefined),
  direction,
  rtcp,
  rtp: z.array(z.unknown()).default([]),
});

const description = z.object({
  connection: connection.catch(undefined),
  direction,
  media: z.array(media).max(maxMediaLines),
});

/** Undefined when it is no session description, or one beyond all measure. */
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

/** The library's grammar is strict where carriers are not. */
function normaliseLine(line: string): string {
  const trimmed = line.trimEnd();
  // `m=audio 4000/1 RTP/AVP 0`: a count of ports, which sdp-transform does not know.
  if (trimmed.startsWith('m=')) {
    return trimmed.replace(/^(m=\S+ \d+)\/\d+ /, '$1 ').replace(/ +/g, ' ');
  }
  return trimmed;
}

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
    // Repeated in our answer when the line is refused: printable characters only.
    formats: line.payloads.replaceAll(/[^\x20-\x7e]/g, '').trim(),
    ...optionalConnection(line.connection),
    ...optionalDirection(line.direction),
    ...optionalRtcp(line.rtcp),
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

/** Literals only, in their normal form (as sockets report them): a name would need DNS in the middle of an answer. */
function readAddress(text: string): SdpAddress | undefined {
  // `224.2.1.1/127`: the time-to-live of multicast, seen on unicast as well.
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

/** `0.0.0.0` and `::` are the old way (RFC 2543) to say: send nothing. */
export function isUnspecified(address: SdpAddress): boolean {
  return address.address === '0.0.0.0' || address.address === '::';
}

/** Media is for one phone: never multicast, never broadcast. */
export function isUnicast(address: SdpAddress): boolean {
  const range = ipaddr.parse(address.address).range();
  return range !== 'multicast' && range !== 'broadcast' && range !== 'unspecified';
}
