import { describe, expect, test } from 'vitest';
import { parseDtmfInfo } from '../../src/sip/legs/dialog-requests.ts';
import {
  addressList,
  contactTarget,
  cseqNumber,
  hostOf,
  reasonText,
  tagOf,
  uriOf,
} from '../../src/sip/sip-headers.ts';

describe('reading header values of the far end', () => {
  test.each([
    ['<sip:a@b;transport=tcp>;tag=x', 'sip:a@b;transport=tcp', 'x'],
    ['"Bob <b>;tag=no" <sip:a@b> ; tag=x;q=1', 'sip:a@b', 'x'],
    ['sip:a@b;tag=x', 'sip:a@b', 'x'],
    ['<sip:a@b;tag=inside>', 'sip:a@b;tag=inside', undefined],
    ['"quote \\" <sip:no@no>" <sip:a@b>', 'sip:a@b', undefined],
    ['<>', undefined, undefined],
    ['<sip:open', undefined, undefined],
    ['', undefined, undefined],
    [undefined, undefined, undefined],
  ])('%s', (header, uri, tag) => {
    expect(uriOf(header)).toBe(uri);
    expect(tagOf(header)).toBe(tag);
  });

  test.each([
    ['sip:bob@10.0.0.7:5060;transport=tcp', '10.0.0.7'],
    ['sips:host.test?x=1', 'host.test'],
    ['sip:bob:secret;tag=1@[2001:db8::1]:5060', '[2001:db8::1]'],
    ['tel:+12025550100', undefined],
    ['sip:', undefined],
    [undefined, undefined],
  ])('reads the host of %s', (uri, host) => {
    expect(hostOf(uri)).toBe(host);
  });

  test('reads Record-Route in order, with commas inside quotes and URIs', () => {
    expect(addressList('<sip:p1;lr>,"a, b" <sip:p2;lr;x=1,2>;y , <sip:p3>')).toEqual([
      'sip:p1;lr',
      'sip:p2;lr;x=1,2',
      'sip:p3',
    ]);
    expect(addressList(undefined)).toEqual([]);
    expect(addressList('garbage, <')).toEqual([]);
  });

  test('reads CSeq and Reason', () => {
    expect(cseqNumber('123026549 INVITE')).toBe(123_026_549);
    expect(cseqNumber('x')).toBeUndefined();
    expect(reasonText('SIP;cause=200;text="ACK timeout"')).toBe('ACK timeout');
    expect(reasonText('Q.850;cause=16')).toBe('Q.850 16');
    expect(reasonText('nothing')).toBeUndefined();
  });

  test.each([
    ['<sip:bob@10.0.0.7:5062;transport=tcp>;expires=60', 'sip:bob@10.0.0.7:5062;transport=tcp'],
    ['sip:bob@pbx_1.example.com;x=1', 'sip:bob@pbx_1.example.com'],
    ['"B, <x>" <sips:b;x=y@[2001:db8::1]:5061>', 'sips:b;x=y@[2001:db8::1]:5061'],
    ['<SIP:10.0.0.7>', 'SIP:10.0.0.7'],
    ['<tel:+1555>, <sip:bob@10.0.0.7>', 'sip:bob@10.0.0.7'],
  ])('takes a dialog’s target from the Contact %s', (contact, target) => {
    expect(contactTarget(contact)).toBe(target);
  });

  test.each([
    [undefined],
    [''],
    ['*'],
    ['<>'],
    ['<tel:+15551230001>'],
    ['tel:+15551230001'],
    ['<sip:+1 555@10.0.0.7>'],
    ['<sip:bob@>'],
    ['<sip:>'],
    ['<sip:bob@10.0.0.7:0>'],
    ['<sip:bob@10.0.0.7:65536>'],
    ['<sip:bob@10.0.0.7:port>'],
    ['<sip:bob@2001:db8::1>'],
    ['"Bob <sip:bob@10.0.0.7>'],
    [`<sip:${'a'.repeat(50_000)} @10.0.0.7>`],
  ])('finds no target in the Contact %s', (contact) => {
    expect(contactTarget(contact)).toBeUndefined();
  });

  test('reads long hostile values without noticeable delay', () => {
    const hostile = [
      `"${'\\'.repeat(50_000)}`,
      '<'.repeat(50_000),
      '"a'.repeat(30_000),
      ','.repeat(50_000),
    ];

    for (const value of hostile) {
      expect(uriOf(value) ?? '').not.toBe('never');
      expect(addressList(value)).toEqual([]);
      expect(tagOf(value)).toBeUndefined();
      expect(reasonText(value)).toBeUndefined();
    }
  });
});

describe('DTMF in INFO', () => {
  test.each([
    ['application/dtmf-relay', 'Signal=5\r\nDuration=160', { digit: '5', durationMs: 160 }],
    [
      'Application/DTMF-Relay; charset=x',
      'signal = #\nduration = 999999',
      { digit: '#', durationMs: 30_000 },
    ],
    ['application/dtmf-relay', 'Signal=10\r\n', { digit: '*' }],
    ['application/dtmf', ' a ', { digit: 'A' }],
    ['application/dtmf', '55', undefined],
    ['application/dtmf-relay', 'Duration=160', undefined],
    ['application/dtmf-relay', undefined, undefined],
    ['text/plain', '5', undefined],
    [undefined, '5', undefined],
  ])('reads %s with %j as %j', (type, body, digit) => {
    expect(parseDtmfInfo(type, body)).toEqual(digit);
  });
});
