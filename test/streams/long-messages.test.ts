// Frames of RFC 6455 as bots send them, cut into chunks anywhere: what is too long is gone, and all else is there to the byte.

import { describe, expect, test } from 'vitest';
import { LongMessages } from '../../src/streams/long-messages.ts';
import { randomFrom } from '../faults/random.ts';

const response = Buffer.from('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n');
const maxBytes = 70_000;

type Opcode = 'text' | 'continuation' | 'ping' | 'close';
const opcodes = { continuation: 0, text: 1, close: 8, ping: 9 } as const;

function frame(opcode: Opcode, length: number, isLast = true): Buffer {
  const first = opcodes[opcode] | (isLast ? 0x80 : 0);
  const payload = Buffer.alloc(length, length % 251);
  if (length < 126) return Buffer.concat([Buffer.of(first, length), payload]);
  const head = Buffer.alloc(length < 65_536 ? 4 : 10);
  head[0] = first;
  head[1] = head.length === 4 ? 126 : 127;
  if (head.length === 4) head.writeUInt16BE(length, 2);
  else head.writeBigUInt64BE(BigInt(length), 2);
  return Buffer.concat([head, payload]);
}

function pass(bytes: Buffer, cut: () => number = () => bytes.length) {
  const leftOut: boolean[] = [];
  const messages = new LongMessages(maxBytes, (isBegun) => leftOut.push(isBegun));
  const passed: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const length = cut();
    passed.push(...messages.pass(bytes.subarray(at, at + length)));
    at += length;
  }
  return { passed: Buffer.concat(passed), leftOut };
}

const emptyEnd = frame('continuation', 0);

describe('messages that are too long', () => {
  test.each<[string, Buffer[], Buffer[], boolean[]]>([
    ['one frame', [frame('text', 70_001), frame('text', 5)], [frame('text', 5)], [false]],
    [
      'its first part already, with a ping between',
      [
        ...[frame('text', 70_001, false), frame('ping', 3), frame('continuation', 9, false)],
        ...[frame('continuation', 9), frame('text', 6)],
      ],
      [frame('ping', 3), frame('text', 6)],
      [false],
    ],
    [
      'a later part: the message ends before it',
      [
        ...[frame('text', 40_000, false), frame('continuation', 30_001, false), frame('ping', 1)],
        ...[frame('continuation', 8), frame('text', 7)],
      ],
      [frame('text', 40_000, false), emptyEnd, frame('ping', 1), frame('text', 7)],
      [true],
    ],
    [
      'the last part',
      [frame('text', 40_000, false), frame('continuation', 40_000), frame('close', 2)],
      [frame('text', 40_000, false), emptyEnd, frame('close', 2)],
      [true],
    ],
    [
      'none',
      [frame('text', 70_000), frame('text', 0)],
      [frame('text', 70_000), frame('text', 0)],
      [],
    ],
    [
      'none, in parts',
      [frame('text', 40_000, false), frame('continuation', 30_000), frame('text', 40_000)],
      [frame('text', 40_000, false), frame('continuation', 30_000), frame('text', 40_000)],
      [],
    ],
  ])('are left out: %s', (_what, sent, kept, leftOut) => {
    const whole = pass(Buffer.concat([response, ...sent]));

    expect(whole.passed.equals(Buffer.concat([response, ...kept]))).toBe(true);
    expect(whole.leftOut).toEqual(leftOut);
  });

  test('are left out, however the bytes are cut', () => {
    const random = randomFrom(11);
    const kinds = [0, 3, 125, 126, 300, 65_535, 65_536, 70_000, 70_001, 90_000] as const;
    const frames = kinds.flatMap((length) => [frame('text', length), frame('ping', 4)]);
    const isKept = (one: Buffer) => one.length <= maxBytes + 10;
    for (let round = 0; round < 60; round += 1) {
      const sent = Array.from({ length: 8 }, () => random.pick(frames as [Buffer]));
      // Byte by byte only now and then, for it takes long.
      const most = random.pick([40, 900, 5_000, 100_000]);
      const cut = () => random.between(1, round % 20 === 0 ? 2 : most);
      const { passed } = pass(Buffer.concat([response, ...sent]), cut);
      const kept = Buffer.concat([response, ...sent.filter(isKept)]);
      expect(passed.equals(kept), `round ${round}`).toBe(true);
    }
  });
});

describe('what is no WebSocket, or none that can be read', () => {
  test.each([
    ['a refusal', 'HTTP/1.1 403 Forbidden\r\n\r\n\u0081\u007f\u0000\u0000\u0000\u0000\u007f'],
    ['no HTTP', '\u0081\u007f'.repeat(50_000)],
    [
      'a length beyond belief',
      'HTTP/1.1 101 Yes\r\n\r\n\u0081\u007f\u0000\u0000\u0000\u0002\u0000\u0000\u0000\u0000more',
    ],
  ])('is passed on as it is: %s', (_what, text) => {
    const bytes = Buffer.from(text, 'latin1');

    expect(pass(bytes, () => 7).passed.equals(bytes)).toBe(true);
  });

  test('an interim response is not the answer', () => {
    const hints = Buffer.from('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n');
    const sent = Buffer.concat([hints, response, frame('text', 80_000), frame('text', 2)]);

    expect(pass(sent).passed.equals(Buffer.concat([hints, response, frame('text', 2)]))).toBe(true);
  });

  test('random bytes never throw, and are never more than there were', () => {
    const random = randomFrom(5);
    for (let round = 0; round < 300; round += 1) {
      const noise = Buffer.from(Array.from({ length: 2_000 }, () => random.between(0, 255)));
      const { passed, leftOut } = pass(Buffer.concat([response, noise]), () => 97);
      const most = response.length + noise.length + leftOut.length * emptyEnd.length;
      expect(passed.length).toBeLessThanOrEqual(most);
    }
  });
});
