// Offer and answer (RFC 3264) for one audio stream: PCMU, PCMA and telephone-event. Builds our
// descriptions, and reduces the far end's descriptions to what the media worker needs.

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
  /** Session id of the o= line, in decimal digits. */
  readonly sessionId: string;
  /**
   * Codecs that we offer, in order of preference. An offer of the far end may have either codec.
   */
  readonly codecs: readonly Codec[];
};

/** What offer and answer agreed on: plain data for the worker. */
export type RemoteMedia = {
  readonly address: string;
  readonly port: number;
  /** Where the far end sends and receives RTCP. */
  readonly rtcp: { readonly address: string; readonly port: number };
  /**
   * Whether the far end holds in the old way (RFC 2543), by `c=IN IP4 0.0.0.0`: there is no address
   * to send to.
   */
  readonly addressWithheld: boolean;
  /** Whether we send audio. False on hold: the far end wants no audio. */
  readonly weSend: boolean;
  /** Whether the far end sends audio. False if its description says that it sends none. */
  readonly theySend: boolean;
  readonly codec: Codec;
  /** Payload type of the packets that we send. */
  readonly payloadType: number;
  /**
   * Payload types that we accept for each codec: those of our description, and those of the far
   * end's, which many senders use instead.
   */
  readonly receive: Readonly<Record<Codec, readonly number[]>>;
  /** Payload types that we accept for telephone events. */
  readonly telephoneEvents: readonly number[];
  /** Payload type for keys that we send, as the far end declared it. Absent if it takes no keys. */
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
 * Reads an answer to our offer, early or final.
 * @returns undefined if no audio line in it is usable
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

/** Whether a new description changes the far end's address or the directions of the audio. */
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
   * Builds the answer with this o= version. The caller keeps the previous version if nothing else
   * changed.
   */
  readonly build: (version: number) => string;
};

/**
 * Answers an offer of the far end within the call.
 * @returns undefined if no audio line in it is usable
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
  // RFC 3264, section 6: the answer has every m= line, in the offer's order. A zero port refuses a
  // line.
  const mediaLines = sdp.media.flatMap((line) =>
    line === chosen
      ? [
          ...audioLines(local.port, line.protocol, supportedFormats(line)),
          `a=${directionOf(remote)}`,
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
    rtcp: rtcpOf(line, connection.address),
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
 * Returns the far end's RTCP address: that of `a=rtcp` (RFC 3605), or the port above the RTP port
 * (RFC 3550, section 11). If the host in `a=rtcp` is unreadable, the RTP host is used.
 */
function rtcpOf({ port, rtcp }: SdpMedia, address: string): RemoteMedia['rtcp'] {
  if (rtcp === undefined) return { address, port: port + 1 };
  const { connection } = rtcp;
  const isNamed = connection !== undefined && connection !== 'unreadable';
  return { address: isNamed ? connection.address : address, port: rtcp.port };
}

/**
 * Whether the line is RTP audio that we support. We do not offer or support RTP/SAVP. RTP/AVPF only
 * adds feedback that we need not send.
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
    const encoding = encodingOf(line, payloadType);
    if (encoding !== undefined) formats.push({ payloadType, encoding });
  }
  return formats;
}

function encodingOf(line: SdpMedia, payloadType: number): Format['encoding'] | undefined {
  const map = line.rtpmaps.find((entry) => entry.payloadType === payloadType);
  if (map === undefined) {
    // RFC 3551: 0 and 8 need no rtpmap, and old gateways write no rtpmap for them.
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
    // Also accept our own number, unless the far end uses it for something else: both codecs were
    // offered, and gateways switch between them.
    return [...declared.map((format) => format.payloadType), ...(taken.has(own) ? [] : [own])];
  };
  return { PCMU: typesFor('PCMU'), PCMA: typesFor('PCMA') };
}

function telephoneEventTypes(formats: readonly Format[]): readonly number[] {
  const declared = formats.filter((format) => format.encoding === 'telephone-event');
  // Accept our number even if the answer names no telephone-event: gateways use the number of our
  // offer all the same.
  const taken = formats.some((format) => format.payloadType === telephoneEventPayloadType);
  return [
    ...declared.map((format) => format.payloadType),
    ...(taken ? [] : [telephoneEventPayloadType]),
  ];
}

// ── Writing ──────────────────────────────────────────────────────────────────────────────────────

function directionOf(remote: RemoteMedia): Direction {
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
