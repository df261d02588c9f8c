import { describe, expect, test } from 'vitest';
import {
  headerValues,
  parseMessage,
  serializeMessage,
  sortedHeaders,
} from '../../../src/embedded/drachtio/message/sip-message.ts';

function parsed(text: string) {
  const result = parseMessage(text);
  if (result.kind === 'rubbish') throw new Error(result.why);
  return result.message;
}

describe('parsing SIP messages', () => {
  test('expands compact names, joins folded lines and keeps unknown headers in place', () => {
    const message = parsed(
      'INVITE sip:a@b SIP/2.0\r\nv: SIP/2.0/UDP h;branch=z9hG4bK1\r\nx-LAB:  one\r\nSubject: a\r\n  b\r\n\tc\r\nl: 4\r\n\r\nbody',
    );

    expect(message).toEqual({
      kind: 'request',
      method: 'INVITE',
      uri: 'sip:a@b',
      headers: [
        { name: 'Via', value: 'SIP/2.0/UDP h;branch=z9hG4bK1' },
        { name: 'x-LAB', value: 'one' },
        { name: 'Subject', value: 'a b c' },
        { name: 'Content-Length', value: '4' },
      ],
      body: 'body',
    });
  });

  test('reads bare line feeds and blank lines before the message', () => {
    const message = parsed('\r\n\nSIP/2.0 180 Ringing\nFrom: a\nTo: b\n\nx');

    expect(message).toMatchObject({ kind: 'response', status: 180, reason: 'Ringing', body: 'x' });
    expect(headerValues(message, 'To')).toEqual(['b']);
  });

  test('drops lines without a colon or with a blank in the name', () => {
    const message = parsed(
      'OPTIONS sip:a SIP/2.0\r\nBad Header: x\r\nrubbish\r\n: y\r\nTo : b\r\n\r\n',
    );

    expect(message.headers).toEqual([{ name: 'To', value: 'b' }]);
  });

  test('writes back what it read, byte for byte', () => {
    const text = 'SIP/2.0 200 \xc3\x96k\r\nVia: a\r\nVia: b\r\nX-\x7e: \xff\r\n\r\n\x00\xfe';

    expect(serializeMessage(parsed(text))).toBe(text);
  });

  test.each([
    '',
    'INVITE',
    'INVITE sip:a@b',
    'INVITE sip:a@b SIP/3.0\r\n\r\n',
    'INVITE  SIP/2.0\r\n\r\n',
    'INVITE sip:a b SIP/2.0\r\n\r\n',
    'IN(VITE sip:a SIP/2.0\r\n\r\n',
    'SIP/2.0 20 OK\r\n\r\n',
    'SIP/2.0 700 OK\r\n\r\n',
    'SIP/2.0 2000 OK\r\n\r\n',
    'SIP/1.0 200 OK\r\n\r\n',
  ])('rejects %j', (text) => {
    expect(parseMessage(text).kind).toBe('rubbish');
  });

  test('rejects a message with thousands of headers', () => {
    const text = `OPTIONS sip:a SIP/2.0\r\n${'A: b\r\n'.repeat(10_000)}\r\n`;

    expect(parseMessage(text)).toEqual({ kind: 'rubbish', why: 'too many header lines' });
  });

  test('puts headers into the order of drachtio-server, unknown ones after Content-Length', () => {
    const names = [
      'P-Asserted-Identity',
      'X-B',
      'Content-Length',
      'Call-ID',
      'Via',
      'X-A',
      'Contact',
      'Via',
    ];

    const sorted = sortedHeaders(names.map((name, index) => ({ name, value: String(index) })));

    expect(sorted.map((header) => `${header.name}=${header.value}`)).toEqual([
      'Via=4',
      'Via=7',
      'Call-ID=3',
      'Contact=6',
      'Content-Length=2',
      'X-B=1',
      'X-A=5',
      'P-Asserted-Identity=0',
    ]);
  });
});
