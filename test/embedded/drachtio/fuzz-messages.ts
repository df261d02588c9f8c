// Seeds and mutations for hostile input. The same seed gives the same messages on every run and
// machine.

import { readdirSync, readFileSync } from 'node:fs';

export type Random = {
  /** Returns an integer from 0 to `limit` - 1. */
  below(limit: number): number;
  pick<Item>(items: readonly [Item, ...Item[]]): Item;
};

/** mulberry32: small, fast, and good enough to choose what to break. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  const below = (limit: number) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * limit);
  };
  return { below, pick: (items) => items[below(items.length)] ?? items[0] };
}

const TORTURE_FOLDER = new URL('../../fixtures/rfc4475/', import.meta.url);

export function tortureMessages(): { readonly name: string; readonly bytes: Buffer }[] {
  return readdirSync(TORTURE_FOLDER)
    .filter((file) => file.endsWith('.dat'))
    .sort()
    .map((file) => ({
      name: file.slice(0, -'.dat'.length),
      bytes: readFileSync(new URL(file, TORTURE_FOLDER)),
    }));
}

const SDP =
  'v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0\r\n';

/** Builds a well-formed request. `id` makes it unique, and its answers go to `host`. */
export function request(
  method: string,
  id: string,
  host: string,
  transport: 'UDP' | 'TCP',
): string {
  const body = method === 'INVITE' || method === 'UPDATE' ? SDP : '';
  return [
    `${method} sip:service@127.0.0.1 SIP/2.0`,
    `Via: SIP/2.0/${transport} ${host};rport;branch=z9hG4bK${id}`,
    'Max-Forwards: 70',
    `From: "Fuzz, er" <sip:fuzz@${host}>;tag=${id}`,
    'To: <sip:service@127.0.0.1>',
    `Call-ID: ${id}@fuzz`,
    `CSeq: 1 ${method}`,
    `Contact: <sip:fuzz@${host};transport=${transport.toLowerCase()}>`,
    `Record-Route: <sip:${host};lr>, <sip:edge@${host}>`,
    'Allow: INVITE, ACK, BYE, CANCEL, UPDATE',
    'Supported: timer, 100rel',
    'Require: timer',
    'Session-Expires: 1800;refresher=uac',
    'Min-SE: 90',
    ...(body === '' ? [] : ['Content-Type: application/sdp']),
    `Content-Length: ${body.length}`,
    '',
    body,
  ].join('\r\n');
}

/** Builds a far end's response to a request of the engine. */
export function response(to: string, status: string, host: string): string {
  const copied = (name: string) =>
    new RegExp(`^${name}:.*$`, 'm').exec(to)?.[0].trim() ?? `${name}:`;
  const body = status.startsWith('2') && / INVITE\r$/m.test(to) ? SDP : '';
  return [
    `SIP/2.0 ${status}`,
    copied('Via'),
    copied('From'),
    `${copied('To')};tag=far`,
    copied('Call-ID'),
    copied('CSeq'),
    `Contact: <sip:far@${host}>`,
    `Record-Route: <sip:edge@${host}>`,
    'Allow: INVITE, ACK, BYE, CANCEL, UPDATE',
    'Require: timer',
    'Session-Expires: 90;refresher=uac',
    'Min-SE: 120',
    ...(body === '' ? [] : ['Content-Type: application/sdp']),
    `Content-Length: ${body.length}`,
    '',
    body,
  ].join('\r\n');
}

const NASTY = [
  '<tel:+1555>',
  '<sip:a b@[::1>',
  ',*,',
  ';lr',
  ';refresher=',
  '\0',
  '\r\n',
  '\r\n\r\n',
  '\n',
  '%',
  '%00',
  '"',
  '<',
  '>',
  ';',
  ',',
  ':',
  '@',
  '[::1',
  'sip:',
  '|',
  '#',
  '-1',
  '4294967296',
  '99999999999999999999',
  'é€😀',
  '__proto__',
  'constructor',
  'Content-Length: 99999\r\n',
  'Content-Length: -1\r\n',
  'Via: SIP/2.0/UDP 127.0.0.1:1;branch=z9hG4bKx\r\n',
  'Route: <sip:127.0.0.1:9;lr>\r\n',
  'Require: nothing\r\n',
  'CSeq: 99999999999 INVITE\r\n',
  'a'.repeat(5_000),
  ';x=y'.repeat(500),
] as const;

type Mutation = (bytes: Buffer, random: Random) => Buffer;

const MUTATIONS: readonly [Mutation, ...Mutation[]] = [
  function flipByte(bytes, random) {
    const copy = Buffer.from(bytes);
    if (copy.length > 0) copy[random.below(copy.length)] = random.below(256);
    return copy;
  },
  function truncate(bytes, random) {
    return bytes.subarray(0, random.below(bytes.length + 1));
  },
  function cutOut(bytes, random) {
    const start = random.below(bytes.length + 1);
    return Buffer.concat([bytes.subarray(0, start), bytes.subarray(start + random.below(40))]);
  },
  function repeatPart(bytes, random) {
    const start = random.below(bytes.length + 1);
    const part = bytes.subarray(start, start + random.below(80));
    return Buffer.concat([bytes.subarray(0, start), part, bytes.subarray(start)]);
  },
  function insertNasty(bytes, random) {
    const start = random.below(bytes.length + 1);
    const nasty = Buffer.from(random.pick(NASTY));
    return Buffer.concat([bytes.subarray(0, start), nasty, bytes.subarray(start)]);
  },
  function dropLine(bytes, random) {
    return changeLines(bytes, (lines) => lines.splice(random.below(lines.length), 1));
  },
  function doubleLine(bytes, random) {
    return changeLines(bytes, (lines) => {
      const line = lines[random.below(lines.length)] ?? '';
      lines.splice(random.below(lines.length), 0, line);
    });
  },
  function emptyValue(bytes, random) {
    return changeLines(bytes, (lines) => {
      const index = random.below(lines.length);
      lines[index] = (lines[index] ?? '').replace(/:.*/, ':');
    });
  },
  function changeNumber(bytes, random) {
    const number = random.pick([
      '0',
      '-1',
      '65536',
      '2147483648',
      '18446744073709551616',
      '1e9',
      '',
    ]);
    return changeLines(bytes, (lines) => {
      const index = random.below(lines.length);
      lines[index] = (lines[index] ?? '').replace(/\d+/, number);
    });
  },
];

const MAX_MUTATIONS = 4;

export function mutate(message: Buffer, random: Random): Buffer {
  let mutated = message;
  const count = 1 + random.below(MAX_MUTATIONS);
  for (let index = 0; index < count; index += 1) mutated = random.pick(MUTATIONS)(mutated, random);
  return mutated;
}

function changeLines(bytes: Buffer, change: (lines: string[]) => unknown): Buffer {
  const lines = bytes.toString('latin1').split('\r\n');
  change(lines);
  return Buffer.from(lines.join('\r\n'), 'latin1');
}
