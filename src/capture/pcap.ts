// Writes SIP messages as a pcap file for Wireshark and similar tools. Each message becomes a UDP
// packet, regardless of the original transport.

import { isIPv6 } from 'node:net';
import type { LoggedMessage } from './sip-log.ts';

/** https://datatracker.ietf.org/doc/draft-ietf-opsawg-pcap/ */
const magic = 0xa1b2c3d4;
const rawIp = 101;
const maxPacketBytes = 65_535;
const udp = 17;
const defaultPort = 5060;

type Place = { readonly address: string; readonly port: number };

export function pcapOf(messages: readonly LoggedMessage[]): Buffer {
  const header = Buffer.alloc(24);
  header.writeUInt32LE(magic, 0);
  header.writeUInt16LE(2, 4);
  header.writeUInt16LE(4, 6);
  header.writeUInt32LE(maxPacketBytes, 16);
  header.writeUInt32LE(rawIp, 20);
  return Buffer.concat([header, ...messages.flatMap((message) => recordOf(message, messages))]);
}

function recordOf(message: LoggedMessage, all: readonly LoggedMessage[]): readonly Buffer[] {
  const packet = ipPacket(
    placeOf(message),
    receiverOf(message, all),
    Buffer.from(message.text, 'utf8'),
  );
  const at = Date.parse(message.at);
  const header = Buffer.alloc(16);
  header.writeUInt32LE(Math.floor(at / 1_000), 0);
  header.writeUInt32LE((at % 1_000) * 1_000, 4);
  header.writeUInt32LE(packet.length, 8);
  header.writeUInt32LE(packet.length, 12);
  return [header, packet];
}

function placeOf({ address, port }: LoggedMessage): Place {
  return { address: address || '0.0.0.0', port: port || defaultPort };
}

/**
 * Guesses a message's receiver, because a captured message names only its sender. We use the sender
 * of a message in the opposite direction, preferably of a message with the same Call-ID, because
 * that message comes from the same gateway.
 */
function receiverOf(message: LoggedMessage, all: readonly LoggedMessage[]): Place {
  const answers = all.filter(({ isOurs, address }) => isOurs !== message.isOurs && address !== '');
  const callId = callIdOf(message.text);
  const other = answers.find(({ text }) => callIdOf(text) === callId) ?? answers[0];
  return other === undefined ? { address: '0.0.0.0', port: defaultPort } : placeOf(other);
}

function callIdOf(text: string): string | undefined {
  return /^(?:call-id|i)[ \t]*:[ \t]*(\S{1,256})/im.exec(text)?.[1];
}

function ipPacket(from: Place, to: Place, payload: Buffer): Buffer {
  const datagram = Buffer.alloc(8 + payload.length);
  datagram.writeUInt16BE(from.port & 0xffff, 0);
  datagram.writeUInt16BE(to.port & 0xffff, 2);
  datagram.writeUInt16BE(datagram.length, 4);
  payload.copy(datagram, 8);
  const is6 = isIPv6(from.address) || isIPv6(to.address);
  return Buffer.concat([
    is6 ? ip6Header(from, to, datagram) : ip4Header(from, to, datagram),
    datagram,
  ]);
}

/**
 * We don't compute the checksums, because 0 means "no checksum" in UDP, and pcap readers ignore the
 * IP checksum.
 */
function ip4Header(from: Place, to: Place, { length }: Buffer): Buffer {
  const header = Buffer.alloc(20);
  header[0] = 0x45;
  header.writeUInt16BE(20 + length, 2);
  header[8] = 64;
  header[9] = udp;
  header.set(ip4Bytes(from.address), 12);
  header.set(ip4Bytes(to.address), 16);
  return header;
}

function ip4Bytes(address: string): readonly number[] {
  const parts = address.split('.').map(Number);
  return parts.length === 4 && parts.every((part) => part >= 0 && part < 256)
    ? parts
    : [0, 0, 0, 0];
}

function ip6Header(from: Place, to: Place, { length }: Buffer): Buffer {
  const header = Buffer.alloc(40);
  header[0] = 0x60;
  header.writeUInt16BE(length, 4);
  header[6] = udp;
  header[7] = 64;
  header.set(ip6Bytes(from.address), 8);
  header.set(ip6Bytes(to.address), 24);
  return header;
}

function ip6Bytes(address: string): Uint8Array {
  const bytes = Buffer.alloc(16);
  if (!isIPv6(address)) return bytes;
  const [head = '', tail = ''] = address.replace(/%.*$/, '').split('::');
  const words = (text: string) =>
    text === '' ? [] : text.split(':').map((word) => Number.parseInt(word, 16));
  for (const [index, word] of words(head).entries()) bytes.writeUInt16BE(word & 0xffff, index * 2);
  const last = address.includes('::') ? words(tail) : [];
  for (const [index, word] of last.entries())
    bytes.writeUInt16BE(word & 0xffff, 16 - (last.length - index) * 2);
  return bytes;
}
