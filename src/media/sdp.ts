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
import {
  acceptedEncryption,
  cryptoAttributes,
  type Encryption,
  noEncryption,
  type OurEncryption,
  offeredEncryption,
  type SrtpKeys,
} from './srtp/negotiation.ts';

/**
 * RFC 3389's static payload type. We accept comfort noise from any far end, because some send it
 * without an agreement. We neither offer it nor send it: a far end for which it's agreed suppresses
 * silence, and its detector then cuts off the first milliseconds of words, and hides the noise by
 * which we judge the line. FreeSWITCH offers it by default; Asterisk, like us, doesn't.
 */
export const comfortNoisePayloadType = 13;
const telephoneEventPayloadType = 101;
const clockRateHz = 8_000;
const frameMs = 20;
/**
 * The longest packets that we receive, as declared by `a=maxptime`. With its headers, such a packet
 * fits into 1,500 bytes, the jitter buffer plays it whole, and a bridge relays it.
 */
export const maxReceivedMs = 150;
/**
 * The shortest packets that we send. A far end that declares less gets 200 packets a second, which
 * are already more than half headers.
 */
const minSentMs = 5;
const samplesPerMs = clockRateHz / 1_000;
const maxPort = 65_535;

type Encoding = Codec | 'telephone-event';

/** The payload type under which we declare each encoding. */
export type PayloadNumbers = Readonly<Record<Encoding, number>>;

const usualNumbers: PayloadNumbers = {
  PCMU: 0,
  PCMA: 8,
  'telephone-event': telephoneEventPayloadType,
};
const codecs: readonly Codec[] = ['PCMU', 'PCMA'];
const codecEncodings: Readonly<Record<string, Codec>> = { pcmu: 'PCMU', pcma: 'PCMA' };

export type LocalMedia = OurEncryption & {
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
  /**
   * The far end's RTCP address. Its port is 0 if the far end has none. `isMultiplexed` means that
   * RTCP leaves from our RTP port, too (RFC 5761).
   */
  readonly rtcp: {
    readonly address: string;
    readonly port: number;
    readonly isMultiplexed?: true;
  };
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
  /** Payload types that the far end has declared for comfort noise, if it has. */
  readonly comfortNoise?: readonly number[];
  /** The payload type that the far end has declared for keys. Absent if it doesn't accept keys. */
  readonly keyPayloadType?: number;
  /** The longest packets to send. Absent if the far end sets no limit. */
  readonly maxPacketSamples?: number;
  /** Absent if the audio isn't encrypted. */
  readonly srtp?: SrtpKeys;
};

/**
 * What a further offer must repeat from the descriptions so far:
 * - the number and order of the m= lines (RFC 3264, section 8). Lines that we've rejected stay
 *   rejected.
 * - the payload types, whose meaning mustn't change during the session (RFC 3264, section 8.3.2).
 */
export type OfferShape = {
  /** The m= lines in order: the text of a rejected line, or undefined for the audio line. */
  readonly lines: readonly (string | undefined)[];
  readonly protocol: string;
  readonly numbers: PayloadNumbers;
};

export function firstOfferShape({ encryption }: OurEncryption): OfferShape {
  return {
    lines: [undefined],
    // RFC 8643: a far end that can't encrypt ignores the keys in a line of RTP/AVP.
    protocol: encryption === 'srtp-required' ? 'RTP/SAVP' : 'RTP/AVP',
    numbers: usualNumbers,
  };
}

/** Offers everything that we support, and audio in both directions. */
export function buildOffer(
  local: LocalMedia,
  version: number,
  shape = firstOfferShape(local),
): string {
  const encodings: readonly Encoding[] = [...local.codecs, 'telephone-event'];
  const formats = encodings.map((encoding) => ({ payloadType: shape.numbers[encoding], encoding }));
  const audio = [
    ...audioLines(local.port, shape.protocol, formats),
    ...cryptoAttributes(local),
    'a=sendrecv',
  ];
  return buildDescription(
    local,
    version,
    shape.lines.flatMap((line) => line ?? audio),
  );
}

/**
 * Reads an early or final answer to our offer, in which the encodings had these numbers.
 * @returns undefined if it contains no usable audio line
 */
export function readAnswer(
  text: string,
  ipVersion: 4 | 6,
  numbers = usualNumbers,
  ours = noEncryption,
): RemoteMedia | undefined {
  const sdp = parseSdp(text);
  const encryptionOf = (line: SdpMedia) => acceptedEncryption(line, ours);
  return sdp && findUsable(sdp, { ipVersion, numbers, encryptionOf })?.remote;
}

/** Whether an answer contains a usable audio line if we disregard how that is encrypted. */
export function hasUsableAudio(text: string, ipVersion: 4 | 6, numbers = usualNumbers): boolean {
  const sdp = parseSdp(text);
  const encryptionOf = (): Encryption => ({ answer: [] });
  return sdp !== undefined && findUsable(sdp, { ipVersion, numbers, encryptionOf }) !== undefined;
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
  /** For our next offer. */
  readonly shape: OfferShape;
};

/**
 * Answers the far end's re-offer. `before` is the shape of the offer that we'd have made until now.
 * @returns undefined if it contains no usable audio line
 */
export function answerOffer(
  text: string,
  local: LocalMedia,
  ipVersion: 4 | 6,
  before = firstOfferShape(local),
): ReofferAnswer | undefined {
  const sdp = parseSdp(text);
  if (sdp === undefined) return undefined;
  const { numbers } = before;
  const encryptionOf = (line: SdpMedia) => offeredEncryption(line, local);
  const found = findUsable(sdp, { ipVersion, numbers, encryptionOf });
  if (found === undefined) return undefined;
  const { chosen, encryption } = found;
  const remote = chosen.rtcpMux ? multiplexed(found.remote) : found.remote;
  const { protocol } = chosen;
  // RFC 3264, section 6: the answer contains every m= line in the offer's order. Setting a line's
  // port to zero rejects it.
  const lines = sdp.media.map((line) =>
    line === chosen
      ? undefined
      : `m=${line.type} 0 ${line.protocol} ${line.formats === '' ? '0' : line.formats}`,
  );
  const audio = [
    ...audioLines(local.port, protocol, supportedFormats(chosen)),
    ...encryption.answer,
    ...(chosen.rtcpMux ? ['a=rtcp-mux'] : []),
    `a=${ourDirection(remote)}`,
  ];
  const mediaLines = lines.flatMap((line) => line ?? audio);
  return {
    remote,
    build: (version) => buildDescription(local, version, mediaLines),
    shape: {
      lines,
      // The far end may have offered keys in RTP/AVP, but we require encryption when we offer.
      protocol: local.encryption === 'srtp-required' ? before.protocol : protocol,
      numbers: nextNumbers(numbers, chosen),
    },
  };
}

function multiplexed(remote: RemoteMedia): RemoteMedia {
  const { address, port } = remote;
  return { ...remote, rtcp: { address, port, isMultiplexed: true } };
}

/** Takes over the far end's numbers, and avoids those that it uses for something else. */
function nextNumbers(before: PayloadNumbers, line: SdpMedia): PayloadNumbers {
  const formats = supportedFormats(line);
  const taken = new Set(payloadTypesOf(line));
  const numberOf = (encoding: Encoding): number => {
    const declared = formats.find((format) => format.encoding === encoding)?.payloadType;
    const number = declared ?? (taken.has(before[encoding]) ? freeNumber(taken) : before[encoding]);
    taken.add(number);
    return number;
  };
  return {
    PCMU: numberOf('PCMU'),
    PCMA: numberOf('PCMA'),
    'telephone-event': numberOf('telephone-event'),
  };
}

/** Returns a payload type of the dynamic range, which has 32 of them (RFC 3551, section 6). */
function freeNumber(taken: ReadonlySet<number>): number {
  let number = telephoneEventPayloadType;
  while (taken.has(number) && number < 127) number += 1;
  return number;
}

type Usable = {
  readonly ipVersion: 4 | 6;
  readonly numbers: PayloadNumbers;
  /** Returns undefined if we can't accept how the line is encrypted. */
  readonly encryptionOf: (line: SdpMedia) => Encryption | undefined;
};

type UsableLine = {
  readonly remote: RemoteMedia;
  readonly chosen: SdpMedia;
  readonly encryption: Encryption;
};

/**
 * Returns the first encrypted line, or else the first line. A far end that offers both kinds may
 * list the plain line first for others' sake.
 */
function findUsable(
  sdp: Sdp,
  { ipVersion, numbers, encryptionOf }: Usable,
): UsableLine | undefined {
  const usable: UsableLine[] = [];
  for (const chosen of sdp.media) {
    const audio = readAudio(sdp, chosen, ipVersion, numbers);
    const encryption = encryptionOf(chosen);
    if (audio === undefined || encryption === undefined) continue;
    const { srtp } = encryption;
    usable.push({ remote: srtp === undefined ? audio : { ...audio, srtp }, chosen, encryption });
  }
  return usable.find(({ remote }) => remote.srtp !== undefined) ?? usable[0];
}

// ── Reading ──────────────────────────────────────────────────────────────────────────────────────

type Format = {
  readonly payloadType: number;
  readonly encoding: Encoding;
};

function readAudio(
  sdp: Sdp,
  line: SdpMedia,
  ipVersion: 4 | 6,
  numbers: PayloadNumbers,
): RemoteMedia | undefined {
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
    rtcp: rtcpAddress(line, connection.address, ipVersion),
    addressWithheld: held,
    weSend: !held && (direction === 'sendrecv' || direction === 'recvonly'),
    theySend: direction === 'sendrecv' || direction === 'sendonly',
    codec: voice.encoding,
    payloadType: voice.payloadType,
    receive: {
      PCMU: acceptedTypes('PCMU', formats, numbers),
      PCMA: acceptedTypes('PCMA', formats, numbers),
    },
    telephoneEvents: acceptedTypes('telephone-event', formats, numbers),
    ...comfortNoiseOf(line),
    ...(keys === undefined ? {} : { keyPayloadType: keys.payloadType }),
    ...maxPacketOf(line),
  };
}

function comfortNoiseOf(line: SdpMedia): Pick<RemoteMedia, 'comfortNoise'> {
  const comfortNoise = payloadTypesOf(line).filter((payloadType) =>
    line.rtpmaps.some(
      (map) =>
        map.payloadType === payloadType &&
        map.encoding === 'cn' &&
        (map.clockRateHz ?? clockRateHz) === clockRateHz,
    ),
  );
  return comfortNoise.length === 0 ? {} : { comfortNoise };
}

/**
 * Returns the limit from `a=maxptime`. The far end's `a=ptime` is only a wish, and our packets of
 * 20 ms are fine for any equipment that doesn't set a lower limit.
 */
function maxPacketOf({ maxPacketMs }: SdpMedia): Pick<RemoteMedia, 'maxPacketSamples'> {
  if (maxPacketMs === undefined) return {};
  return { maxPacketSamples: Math.floor(Math.max(maxPacketMs, minSentMs)) * samplesPerMs };
}

/**
 * Returns the far end's RTCP address from `a=rtcp` (RFC 3605), or else the port above the RTP port
 * (RFC 3550, section 11). If `a=rtcp` contains no host that we can send to, this uses the RTP host.
 */
function rtcpAddress(
  { port, rtcp }: SdpMedia,
  address: string,
  ipVersion: 4 | 6,
): RemoteMedia['rtcp'] {
  if (rtcp === undefined) return { address, port: port === maxPort ? 0 : port + 1 };
  const { connection } = rtcp;
  const isNamed =
    connection !== undefined &&
    connection !== 'unreadable' &&
    isReachable(connection, ipVersion) &&
    !isUnspecified(connection);
  return { address: isNamed ? connection.address : address, port: rtcp.port };
}

/**
 * Checks that the line is RTP audio. RTP/AVPF and RTP/SAVPF are fine, because they only add
 * feedback, which we needn't send.
 */
function isRtpAudio(line: SdpMedia): boolean {
  return line.type === 'audio' && line.port !== 0 && /^RTP\/S?AVPF?$/i.test(line.protocol);
}

function isVoice(format: Format): format is Format & { readonly encoding: Codec } {
  return format.encoding !== 'telephone-event';
}

function isReachable(connection: SdpAddress, ipVersion: 4 | 6): boolean {
  return connection.version === ipVersion && isUnicast(connection);
}

/** Returns the formats that we support, in the far end's order of preference. */
function supportedFormats(line: SdpMedia): readonly Format[] {
  const formats: Format[] = [];
  for (const payloadType of new Set(payloadTypesOf(line))) {
    const encoding = findEncoding(line, payloadType);
    if (encoding !== undefined) formats.push({ payloadType, encoding });
  }
  return formats;
}

function payloadTypesOf(line: SdpMedia): readonly number[] {
  return line.formats
    .split(/\s+/)
    .filter((text) => /^\d{1,3}$/.test(text))
    .map(Number)
    .filter((payloadType) => payloadType <= 127);
}

function findEncoding(line: SdpMedia, payloadType: number): Encoding | undefined {
  const map = line.rtpmaps.find((entry) => entry.payloadType === payloadType);
  if (map === undefined) {
    // Payload types 0 and 8 need no rtpmap (RFC 3551), and old gateways omit it.
    return codecs.find((codec) => usualNumbers[codec] === payloadType);
  }
  if ((map.clockRateHz ?? clockRateHz) !== clockRateHz) return undefined;
  if (map.encoding === 'telephone-event') return 'telephone-event';
  return Object.hasOwn(codecEncodings, map.encoding) ? codecEncodings[map.encoding] : undefined;
}

/**
 * Returns the payload types under which we accept an encoding: those in the far end's description,
 * and our own unless the far end uses it for something else. Some gateways switch between the
 * codecs that we offered, and may send keys with our type even if their answer has no
 * telephone-event.
 */
function acceptedTypes(
  encoding: Encoding,
  formats: readonly Format[],
  numbers: PayloadNumbers,
): readonly number[] {
  const declared = formats.filter((format) => format.encoding === encoding);
  const own = numbers[encoding];
  const isTaken = formats.some((format) => format.payloadType === own);
  return [...declared.map((format) => format.payloadType), ...(isTaken ? [] : [own])];
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
    `a=maxptime:${maxReceivedMs}`,
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
