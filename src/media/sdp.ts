// Offer and answer (RFC 3264) for one audio stream: PCMU, PCMA and telephone-event. Builds our descriptions, and reduces
// the far end's to what the media worker needs.

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
  /** Decimal digits, for the o= line. */
  readonly sessionId: string;
  /** What we offer, the one that we like best first. An offer of the far end may have either. */
  readonly codecs: readonly Codec[];
};

/** What was agreed, for the worker: plain data. */
export type RemoteMedia = {
  readonly address: string;
  readonly port: number;
  /** Where the far end sends and receives RTCP. */
  readonly rtcp: { readonly address: string; readonly port: number };
  /** The old hold (RFC 2543), `c=IN IP4 0.0.0.0`: there is no address to send to. */
  readonly addressWithheld: boolean;
  /** False on hold: the far end wants no audio. */
  readonly weSend: boolean;
  /** False when the far end said that it will send none. */
  readonly theySend: boolean;
  readonly codec: Codec;
  /** Of our packets. */
  readonly payloadType: number;
  /** Of theirs: the numbers of our description, and theirs, which many senders use instead. */
  readonly receive: Readonly<Record<Codec, readonly number[]>>;
  readonly telephoneEvents: readonly number[];
  /** Of keys that we press: what the far end declared. Absent: it takes none. */
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

/** An answer to our offer, early or final. Undefined when no audio line in it is usable. */
export function readAnswer(text: string, ipVersion: 4 | 6): RemoteMedia | undefined {
  const sdp = parseSdp(text);
  if (sdp === undefined) return undefined;
  for (const line of sdp.media) {
    const remote = readAudio(sdp, line, ipVersion);
    if (remote !== undefined) return remote;
  }
  return undefined;
}

/** What is sent, or where to, is not what it was. */
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
  /** The answer with this o= version. The caller keeps the former version when nothing else changed. */
  readonly build: (version: number) => string;
};

/** An offer of the far end within the call. Undefined when no audio line in it is usable. */
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
  // RFC 3264 6: every m= line is answered, in the offer's order; a zero port refuses.
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

// ── Reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────

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
 * What `a=rtcp` names (RFC 3605), or the port above that of RTP (RFC 3550, section 11). A host there
 * that cannot be read stands for that of RTP.
 */
function rtcpOf({ port, rtcp }: SdpMedia, address: string): RemoteMedia['rtcp'] {
  if (rtcp === undefined) return { address, port: port + 1 };
  const { connection } = rtcp;
  const isNamed = connection !== undefined && connection !== 'unreadable';
  return { address: isNamed ? connection.address : address, port: rtcp.port };
}

/** RTP/SAVP was not offered and cannot be spoken; RTP/AVPF only adds feedback that need not be sent. */
function isRtpAudio(line: SdpMedia): boolean {
  return line.type === 'audio' && line.port !== 0 && /^RTP\/AVPF?$/i.test(line.protocol);
}

function isVoice(format: Format): format is Format & { readonly encoding: Codec } {
  return format.encoding !== 'telephone-event';
}

function isReachable(connection: SdpAddress, ipVersion: 4 | 6): boolean {
  return connection.version === ipVersion && isUnicast(connection);
}

/** In the order of the far end's preference. */
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
    // RFC 3551: 0 and 8 need no rtpmap, and old gateways write none.
    return codecs.find((codec) => codecPayloadTypes[codec] === payloadType);
  }
  if ((map.clockRateHz ?? clockRateHz) !== clockRateHz) return undefined;
  if (map.encoding === 'telephone-event') return 'telephone-event';
  return Object.hasOwn(codecEncodings, map.encoding) ? codecEncodings[map.encoding] : undefined;
}

function receivedPayloadTypes(formats: readonly Format[]): RemoteMedia['receive'] {
  const taken = new Set(formats.map((format) => format.payloadType));
  const of = (codec: Codec): readonly number[] => {
    const theirs = formats.filter((format) => format.encoding === codec);
    const own = codecPayloadTypes[codec];
    // Our own number unless the far end uses it for something else: both codecs were offered, and gateways switch.
    return [...theirs.map((format) => format.payloadType), ...(taken.has(own) ? [] : [own])];
  };
  return { PCMU: of('PCMU'), PCMA: of('PCMA') };
}

function telephoneEventTypes(formats: readonly Format[]): readonly number[] {
  const theirs = formats.filter((format) => format.encoding === 'telephone-event');
  // Also where the answer names none: gateways send the number of our offer all the same.
  const taken = formats.some((format) => format.payloadType === telephoneEventPayloadType);
  return [
    ...theirs.map((format) => format.payloadType),
    ...(taken ? [] : [telephoneEventPayloadType]),
  ];
}

// ── Writing ──────────────────────────────────────────────────────────────────────────────────────────────────────────

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
