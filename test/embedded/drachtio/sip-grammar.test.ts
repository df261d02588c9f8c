import { describe, expect, test } from 'vitest';
import {
  addressTag,
  parseCseq,
  parseNameAddress,
  parseSipUri,
  parseVia,
  splitOutsideQuotes,
} from '../../../src/embedded/drachtio/message/sip-grammar.ts';

describe('the URI parser', () => {
  test.each([
    ['sip:a@b', { scheme: 'sip', user: 'a', host: 'b', port: undefined }],
    ['SIPS:b.example:5061', { scheme: 'sips', user: undefined, host: 'b.example', port: 5_061 }],
    ['sip:+1;phone-context=x@h:5060', { user: '+1;phone-context=x', host: 'h', port: 5_060 }],
    ['sip:a:secret@[2001:db8::1]:5070', { user: 'a:secret', host: '2001:db8::1', port: 5_070 }],
    ['sip:a@h?Subject=x@y', { user: 'a', host: 'h' }],
  ])('parses %s', (text, expected) => {
    expect(parseSipUri(text)).toMatchObject(expected);
  });

  test('ignores the case of parameter names', () => {
    const uri = parseSipUri('sip:a@h;Transport=TCP;lr');

    expect([...(uri?.parameters ?? [])]).toEqual([
      ['transport', 'TCP'],
      ['lr', ''],
    ]);
  });

  test.each([
    '',
    'sip:',
    'tel:+1',
    'sip:a@',
    'sip:a@h:0',
    'sip:a@h:65536',
    'sip:a@h:x',
    'sip:a@h h',
    'sip:[::1',
    'sip:[zz]',
  ])('rejects %j', (text) => {
    expect(parseSipUri(text)).toBeUndefined();
  });
});

describe('the parser of From, To and Contact', () => {
  test('ignores brackets, commas and tags in quotes', () => {
    const value = '"a <b>, ;tag=no \\" c" <sip:x@y;p=1>;tag=yes;q';

    expect(parseNameAddress(value)).toEqual({
      display: '"a <b>, ;tag=no \\" c"',
      uri: 'sip:x@y;p=1',
      parameters: ';tag=yes;q',
    });
    expect(addressTag(value)).toBe('yes');
  });

  test('assigns parameters to the header if there are no brackets', () => {
    expect(parseNameAddress('sip:x@y;tag=1')).toEqual({
      display: '',
      uri: 'sip:x@y',
      parameters: ';tag=1',
    });
  });

  test.each(['<sip:x@y', '', 'a b', '"open <sip:x@y>'])('rejects %j', (value) => {
    expect(parseNameAddress(value)).toBeUndefined();
  });
});

describe('parsers of other values', () => {
  test('parse Via', () => {
    const via = parseVia('SIP / 2.0 / udp [::1]:5070 ; branch=z9hG4bK1;rport, SIP/2.0/TCP b');

    expect(via).toMatchObject({ transport: 'UDP', host: '::1', port: 5_070 });
    expect(via?.parameters.get('branch')).toBe('z9hG4bK1');
    expect(parseVia('SIP/2.0/UDP')).toBeUndefined();
    expect(parseVia('2.0/UDP h')).toBeUndefined();
  });

  test('parse CSeq', () => {
    expect(parseCseq('1  INVITE')).toEqual({ number: 1, method: 'INVITE' });
    expect(parseCseq('2147483648 INVITE')).toBeUndefined();
    expect(parseCseq('-1 INVITE')).toBeUndefined();
    expect(parseCseq('1')).toBeUndefined();
  });

  test('split lists outside quotes and brackets', () => {
    expect(splitOutsideQuotes('"a,b" <c,d>,e', ',')).toEqual(['"a,b" <c,d>', 'e']);
  });

  test('handle a quarter of a megabyte of quotes in linear time', () => {
    const hostile = '"\\'.repeat(131_072);

    expect(parseNameAddress(hostile)).toBeUndefined();
    expect(splitOutsideQuotes(hostile, ',')).toHaveLength(1);
  });
});
