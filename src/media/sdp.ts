// Offer and answer (RFC 3264) for one audio stream with PCMU, PCMA and telephone-event. This module
// builds our own descriptions, and extracts what the media worker needs to know from the far end's.

import type { Codec } from './g711.ts';
import {
  type Direction,
  isUnicast,
  isUnspecified,
  parseSdp,
  type Sdp,
  type SdpAddress,
  type SdpMedia,
} from './sdp-parse.ts';

export const comfortNoisePayloadType = 13;
const telephoneEventPayloadType = 101;
const clockRateHz = 8_000;
const frameMs = 20;

const codecPayloadTypes: Readonly<Record<Codec, number>> = { PCMU: 0, PCMA: 8 };
const codecs: readonly Codec[] = ['PCMU', 'PCMA'];
const codecEncodings: Readonly<Record<string, Codec>> = { pcmu: 'PCMU', pcma: 'PCMA' };

export type LocalMedia = {
  readonly address: string;
  readonly port: number;
  /** Session id for the o= line, in decimal digits. */
  readonly sessionId: string;
  /**
   * Codecs that we offer, in order of preference. This list doesn't affect how we answer the far
   * end's offers, where we always accept both codecs.
   */
  readonly codecs: readonly Codec[];
};

/** The result of offer and answer, as plain data for the worker. */
export type RemoteMedia = {
  readonly address: string;
  readonly port: number;
  /** The far end's RTCP address. */
  readonly rtcp: { readonly address: string; readonly port: number };
  /**
   * True if the far end put us on hold the RFC 2543 way, with `c=IN IP4 0.0.0.0`, which leaves us
   * without an address to send to.
   */
  readonly addressWithheld: boolean;
  /** True if the far end wants to receive audio. False during hold. */
  readonly weSend: boolean;
  /** True if the far end's description says that it sends audio. */
  readonly theySend: boolean;
  readonly codec: Codec;
  /** Payload type of the packets that we send. */
  readonly payloadType: number;
  /**
   * Payload types that we accept for each codec. They're the ones in our own description plus the
   * ones in the far end's, which many senders use instead.
   */
  readonly receive: Readonly<Record<Codec, readonly number[]>>;
  /** Payload types that we accept for telephone events. */
  readonly telephoneEvents: readonly number[];
  /** The payload type that the far end has declared for keys. Absent if it doesn't accept keys. */
  readonly keyPayloadType?: number;
};

export function buildOffer(local: LocalMedia, version: number): string {
  return buildDescription(local, version, [
    ...audioLines(local.port, 'RTP/AVP', [
      ...local.codecs.map((codec) => ({ payloadType: codecPayloadTypes[codec], encoding: codec })),
      { payloadType: telephoneEventPayloadType, encoding: 'telephone-event' },
    ]),
    'a=sendrecv',
  ]);
}

/**
 * Reads an early or final answer to our offer.
 * @returns undefined if it contains no usable audio line
 */
export function readAnswer(text: string, ipVersion: 4 | 6): RemoteMedia | undefined {
  const sdp = parseSdp(text);
  if (sdp === undefined) return undefined;
  for (const line of sdp.media) {
    const remote = readAudio(sdp, line, ipVersion);
    if (remote !== undefined) return remote;
  }
  return undefined;
}

/** Whether a new description changes the far end's address or the audio directions. */
export function hasMoved(before: RemoteMedia, now: RemoteMedia): boolean {
  return (
    before.address !== now.address ||
    before.port !== now.port ||
    before.weSend !== now.weSend ||
    before.theySend !== now.theySend
  );
}

export type ReofferAnswer = {
  readonly remote: RemoteMedia;
  /**
   * Builds the answer with this version in its o= line. If nothing else has changed, the caller
   * passes the previous version.
   */
  readonly build: (version: number) => string;
};

/**
 * Answers the far end's re-offer.
 * @returns undefined if it contains no usable audio line
 */
export function answerOffer(
  text: string,
  local: LocalMedia,
  ipVersion: 4 | 6,
): ReofferAnswer | undefined {
  const sdp = parseSdp(text);
  if (sdp === undefined) return undefined;
  const found = findUsable(sdp, ipVersion);
  if (found === undefined) return undefined;
  const { remote, chosen } = found;
  // RFC 3264, section 6: the answer contains every m= line in the offer's order. Setting a line's
  // port to zero rejects it.
  const mediaLines = sdp.media.flatMap((line) =>
    line === chosen
      ? [
          ...audioLines(local.port, line.protocol, supportedFormats(line)),
          `a=${ourDirection(remote)}`,
        ]
      : [`m=${line.type} 0 ${line.protocol} ${line.formats === '' ? '0' : line.formats}`],
  );
  return { remote, build: (version) => buildDescription(local, version, mediaLines) };
}

function findUsable(
  sdp: Sdp,
  ipVersion: 4 | 6,
): { remote: RemoteMedia; chosen: SdpMedia } | undefined {
  for (const chosen of sdp.media) {
    const remote = readAudio(sdp, chosen, ipVersion);
    if (remote !== undefined) return { remote, chosen };
  }
  return undefined;
}

// ── Reading ──────────────────────────────────────────────────────────────────────────────────────

type Format = {
  readonly payloadType: number;
  readonly encoding: Codec | 'telephone-event';
};

function readAudio(sdp: Sdp, line: SdpMedia, ipVersion: 4 | 6): RemoteMedia | undefined {
  const connection = line.connection ?? sdp.connection;
  if (!isRtpAudio(line) || connection === undefined || connection === 'unreadable')
    return undefined;
  const held = isUnspecified(connection);
  if (!held && !isReachable(connection, ipVersion)) return undefined;
  const formats = supportedFormats(line);
  const voice = formats.find(isVoice);
  if (voice === undefined) return undefined;
  const keys = formats.find((format) => !isVoice(format));
  const direction = line.direction ?? sdp.direction ?? 'sendrecv';
  return {
    address: connection.address,
    port: line.port,
    rtcp: rtcpAddress(line, connection.address),
    addressWithheld: held,
    weSend: !held && (direction === 'sendrecv' || direction === 'recvonly'),
    theySend: direction === 'sendrecv' || direction === 'sendonly',
    codec: voice.encoding,
    payloadType: voice.payloadType,
    receive: receivedPayloadTypes(formats),
    telephoneEvents: telephoneEventTypes(formats),
    ...(keys === undefined ? {} : { keyPayloadType: keys.payloadType }),
  };
}

/**
 * Returns the far end's RTCP address from `a=rtcp` (RFC 3605), or else the port above the RTP port
 * (RFC 3550, section 11). If `a=rtcp` contains no readable host, this uses the RTP host.
 */
function rtcpAddress({ port, rtcp }: SdpMedia, address: string): RemoteMedia['rtcp'] {
  if (rtcp === undefined) return { address, port: port + 1 };
  const { connection } = rtcp;
  const isNamed = connection !== undefined && connection !== 'unreadable';
  return { address: isNamed ? connection.address : address, port: rtcp.port };
}

/**
 * Checks that the line is RTP audio that we support, which RTP/SAVP isn't. RTP/AVPF is fine,
 * because it only adds feedback, which we needn't send.
 */
function isRtpAudio(line: SdpMedia): boolean {
  return line.type === 'audio' && line.port !== 0 && /^RTP\/AVPF?$/i.test(line.protocol);
}

function isVoice(format: Format): format is Format & { readonly encoding: Codec } {
  return format.encoding !== 'telephone-event';
}

function isReachable(connection: SdpAddress, ipVersion: 4 | 6): boolean {
  return connection.version === ipVersion && isUnicast(connection);
}

/** Returns the formats that we support, in the far end's order of preference. */
function supportedFormats(line: SdpMedia): readonly Format[] {
  const payloadTypes = line.formats
    .split(/\s+/)
    .filter((text) => /^\d{1,3}$/.test(text))
    .map(Number)
    .filter((payloadType) => payloadType <= 127);
  const formats: Format[] = [];
  for (const payloadType of new Set(payloadTypes)) {
    const encoding = findEncoding(line, payloadType);
    if (encoding !== undefined) formats.push({ payloadType, encoding });
  }
  return formats;
}

function findEncoding(line: SdpMedia, payloadType: number): Format['encoding'] | undefined {
  const map = line.rtpmaps.find((entry) => entry.payloadType === payloadType);
  if (map === undefined) {
    // Payload types 0 and 8 need no rtpmap (RFC 3551), and old gateways omit it.
    return codecs.find((codec) => codecPayloadTypes[codec] === payloadType);
  }
  if ((map.clockRateHz ?? clockRateHz) !== clockRateHz) return undefined;
  if (map.encoding === 'telephone-event') return 'telephone-event';
  return Object.hasOwn(codecEncodings, map.encoding) ? codecEncodings[map.encoding] : undefined;
}

function receivedPayloadTypes(formats: readonly Format[]): RemoteMedia['receive'] {
  const taken = new Set(formats.map((format) => format.payloadType));
  const typesFor = (codec: Codec): readonly number[] => {
    const declared = formats.filter((format) => format.encoding === codec);
    const own = codecPayloadTypes[codec];
    // Some gateways switch between the codecs we offered, so we accept our own payload type, too,
    // unless the far end uses it for something else.
    return [...declared.map((format) => format.payloadType), ...(taken.has(own) ? [] : [own])];
  };
  return { PCMU: typesFor('PCMU'), PCMA: typesFor('PCMA') };
}

function telephoneEventTypes(formats: readonly Format[]): readonly number[] {
  const declared = formats.filter((format) => format.encoding === 'telephone-event');
  // Accept our own payload type even if the answer contains no telephone-event, because gateways
  // may send keys with the type from our offer regardless.
  const taken = formats.some((format) => format.payloadType === telephoneEventPayloadType);
  return [
    ...declared.map((format) => format.payloadType),
    ...(taken ? [] : [telephoneEventPayloadType]),
  ];
}

// ── Writing ──────────────────────────────────────────────────────────────────────────────────────

function ourDirection(remote: RemoteMedia): Direction {
  if (remote.weSend) return remote.theySend ? 'sendrecv' : 'sendonly';
  return remote.theySend ? 'recvonly' : 'inactive';
}

function audioLines(
  port: number,
  protocol: string,
  formats: readonly { readonly payloadType: number; readonly encoding: string }[],
): readonly string[] {
  const events = formats.filter((format) => format.encoding === 'telephone-event');
  return [
    `m=audio ${port} ${protocol} ${formats.map((format) => format.payloadType).join(' ')}`,
    ...formats.map((format) => `a=rtpmap:${format.payloadType} ${format.encoding}/${clockRateHz}`),
    ...events.map((format) => `a=fmtp:${format.payloadType} 0-15`),
    `a=ptime:${frameMs}`,
  ];
}

function buildDescription(
  local: LocalMedia,
  version: number,
  mediaLines: readonly string[],
): string {
  const ip = `IN IP${local.address.includes(':') ? 6 : 4} ${local.address}`;
  return [
    'v=0',
    `o=- ${local.sessionId} ${version} ${ip}`,
    's=-',
    `c=${ip}`,
    't=0 0',
    ...mediaLines,
    '',
  ].join('\r\n');
}
