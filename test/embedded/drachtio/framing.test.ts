import { describe, expect, test } from 'vitest';
import {
  encodeFrame,
  FrameReader,
  maxFrameBytes,
} from '../../../src/embedded/drachtio/control/control-framing.ts';
import {
  maxStreamMessageBytes,
  StreamFramer,
} from '../../../src/embedded/drachtio/transport/tcp-framing.ts';

describe('frames of the control connection', () => {
  test('may be split anywhere, even in their length', () => {
    const reader = new FrameReader();
    const stream = encodeFrame('hello') + encodeFrame('') + encodeFrame('x'.repeat(1_234));

    const frames = stream.split('').flatMap((character) => reader.push(character));

    expect(frames).toEqual([
      { kind: 'frame', payload: 'hello' },
      { kind: 'frame', payload: '' },
      { kind: 'frame', payload: 'x'.repeat(1_234) },
    ]);
  });

  test('are all returned if they arrive together', () => {
    expect(new FrameReader().push('2#ab1#c3#d')).toEqual([
      { kind: 'frame', payload: 'ab' },
      { kind: 'frame', payload: 'c' },
    ]);
  });

  test('may reach the size limit but not exceed it', () => {
    const longest = encodeFrame('x'.repeat(maxFrameBytes));
    expect(new FrameReader().push(longest)).toHaveLength(1);

    expect(new FrameReader().push(`${maxFrameBytes + 1}#id1|sip||`)).toEqual([
      { kind: 'oversize', messageId: 'id1' },
    ]);
  });

  test.each(['x', '#', '1x#', '-1#', '1234567', '1234567#'])(
    'break the connection with %j',
    (text) => {
      expect(new FrameReader().push(text)).toEqual([{ kind: 'broken' }]);
    },
  );
});

describe('SIP over TCP', () => {
  const message = (body: string, length: string) =>
    `OPTIONS sip:a SIP/2.0\r\n${length}\r\n\r\n${body}`;

  test('is framed by Content-Length, wherever the network splits it', () => {
    const stream =
      message('', 'Content-Length: 0') + message('four', 'l:  4') + message('', 'To: x');

    const framer = new StreamFramer();
    const items = stream.split('').flatMap((character) => framer.push(character));

    expect(items.map((item) => item.kind)).toEqual(['message', 'message', 'message']);
    expect(items[1]).toEqual({ kind: 'message', text: message('four', 'l:  4') });
    expect(framer.pendingBytes).toBe(0);
  });

  test('gets an answer to a keep-alive but not to a lone CRLF', () => {
    const framer = new StreamFramer();

    expect(framer.push('\r\n\r\n')).toEqual([{ kind: 'ping' }]);
    expect(framer.push(`\r\n${message('', 'l: 0')}`).map((item) => item.kind)).toEqual(['message']);
  });

  test.each([
    ['a negative length', 'Content-Length: -1'],
    ['a length that is not a number', 'Content-Length: ten'],
    ['two lengths that differ', 'Content-Length: 1\r\nl: 2'],
    ['a length beyond the limit', `Content-Length: ${maxStreamMessageBytes}`],
  ])('breaks with %s', (_name, header) => {
    expect(new StreamFramer().push(message('', header))[0]?.kind).toBe('broken');
  });

  test('breaks with endless headers', () => {
    const framer = new StreamFramer();
    let last = framer.push('OPTIONS sip:a SIP/2.0\r\n');
    for (let sent = 0; sent <= maxStreamMessageBytes && last.length === 0; sent += 8_192) {
      last = framer.push('A: b\r\n'.repeat(1_366));
    }

    expect(last[0]?.kind).toBe('broken');
  });
});
