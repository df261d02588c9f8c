// The callee's part of offer/answer (RFC 3264). We accept one audio stream, with the first G.711
// codec in the offer.

import { parse } from 'sdp-transform';
import type { Codec } from '../../media/g711.ts';

export type AudioOffer = {
  readonly host: string;
  readonly port: number;
  readonly codec: Codec;
  readonly payloadType: number;
  readonly telephoneEventPayloadType?: number;
  /**
   * Direction from the caller's point of view. `inactive` if the caller has put the call on hold
   * with the address 0.0.0.0.
   */
  readonly direction: 'sendrecv' | 'sendonly' | 'recvonly' | 'inactive';
  /**
   * Kind and protocol of all media lines, in the order of the offer, because the answer must
   * contain the same lines.
   */
  readonly lines: readonly { readonly kind: string; readonly protocol: string }[];
  /** Index in `lines` of the audio line that we accept. */
  readonly line: number;
};

/** An offer with more media lines than this may be hostile, so we reject it. */
const maxMediaLines = 8;

const staticPayloadTypes: Readonly<Record<string, Codec>> = { 0: 'PCMU', 8: 'PCMA' };

/** @returns undefined if the offer doesn't contain an audio line that we can accept */
export function readOffer(sdp: string): AudioOffer | undefined {
  try {
    return audioOffer(parse(sdp));
  } catch {
    return undefined;
  }
}

type Session = ReturnType<typeof parse>;
type Media = Session['media'][number];

function audioOffer(session: Session): AudioOffer | undefined {
  const { media } = session;
  const line = media.findIndex(
    ({ type, port, protocol }) => type === 'audio' && port > 0 && protocol === 'RTP/AVP',
  );
  const audio = media[line];
  const host = audio?.connection?.ip ?? session.connection?.ip;
  if (audio === undefined || host === undefined || media.length > maxMediaLines) return undefined;
  const chosen = choosePayload(audio);
  if (chosen === undefined) return undefined;
  const telephoneEvent = audio.rtp.find(
    ({ codec, rate }) => codec.toLowerCase() === 'telephone-event' && (rate ?? 8_000) === 8_000,
  );
  return {
    host,
    port: audio.port,
    ...chosen,
    ...(telephoneEvent === undefined ? {} : { telephoneEventPayloadType: telephoneEvent.payload }),
    // The connection address 0.0.0.0 puts the call on hold (RFC 2543).
    direction:
      host === '0.0.0.0' ? 'inactive' : (audio.direction ?? session.direction ?? 'sendrecv'),
    lines: media.map(({ type, protocol }) => ({ kind: type, protocol })),
    line,
  };
}

function choosePayload(
  audio: Media,
): { readonly codec: Codec; readonly payloadType: number } | undefined {
  for (const text of String(audio.payloads ?? '').split(' ')) {
    const payloadType = Number(text);
    const named = audio.rtp.find(({ payload }) => payload === payloadType);
    const name = named?.codec.toUpperCase() ?? staticPayloadTypes[text];
    if ((name === 'PCMU' || name === 'PCMA') && (named?.rate ?? 8_000) === 8_000) {
      return { codec: name, payloadType };
    }
  }
  return undefined;
}

const answerDirections = {
  sendrecv: 'sendrecv',
  sendonly: 'recvonly',
  recvonly: 'sendonly',
  inactive: 'inactive',
} as const;

/** Writes the SDP answer. `version` must increase with every answer in a call. */
export function writeAnswer(
  offer: AudioOffer,
  local: { readonly host: string; readonly port: number; readonly sessionId: number },
  version: number,
): string {
  const family = local.host.includes(':') ? 'IP6' : 'IP4';
  const lines = [
    'v=0',
    `o=sandbox ${local.sessionId} ${version} IN ${family} ${local.host}`,
    's=sandbox',
    `c=IN ${family} ${local.host}`,
    't=0 0',
  ];
  for (const [index, { kind, protocol }] of offer.lines.entries()) {
    // We reject every other media line by setting its port to 0. The lines must remain in the
    // offer's order (RFC 3264 section 6).
    if (index === offer.line) lines.push(...audioLines(offer, local.port));
    else lines.push(`m=${kind} 0 ${protocol} 0`);
  }
  return `${lines.join('\r\n')}\r\n`;
}

function audioLines(offer: AudioOffer, port: number): string[] {
  const event = offer.telephoneEventPayloadType;
  const formats = event === undefined ? `${offer.payloadType}` : `${offer.payloadType} ${event}`;
  return [
    `m=audio ${port} RTP/AVP ${formats}`,
    `a=rtpmap:${offer.payloadType} ${offer.codec}/8000`,
    ...(event === undefined
      ? []
      : [`a=rtpmap:${event} telephone-event/8000`, `a=fmtp:${event} 0-16`]),
    'a=ptime:20',
    `a=${answerDirections[offer.direction]}`,
  ];
}
