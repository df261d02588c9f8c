import { describe, expect, test } from 'vitest';
import { connectedIdentityOf, endFactsOf } from '../../src/sip/end-facts.ts';
import type { ReceivedRequest, ReceivedResponse } from '../../src/sip/engine/srf-types.ts';
import { seeded } from './seeded-dice.ts';

type Headers = Readonly<Record<string, string>>;

function message(headers: Headers) {
  const byName = new Map(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
  );
  return {
    get: (name: string) => byName.get(name.toLowerCase()),
    has: (name: string) => byName.has(name.toLowerCase()),
  };
}

function response(status: number, reason: string, headers: Headers = {}): ReceivedResponse {
  const source = { source_address: '192.0.2.1', source_port: 5060, protocol: 'udp' };
  return { ...message(headers), status, reason, ...source };
}

function factsOf(status: number, reason: string, headers: Headers = {}) {
  return endFactsOf(response(status, reason, headers)).facts;
}

const cause = (reason: string) =>
  factsOf(480, 'Temporarily Unavailable', { Reason: reason })?.cause;
const block = (reason: string, phrase = 'Network Blocked') =>
  factsOf(603, phrase, { Reason: reason })?.block;

describe('the cause of an end', () => {
  test.each([
    ['Q.850;cause=17;text="User busy"', { q850: 17, text: 'User busy' }],
    ['Q.850 ; cause = 16', { q850: 16 }],
    ['q.850;CAUSE=127', { q850: 127 }],
    ['Q850;cause=3', { q850: 3 }],
    ['SIP;cause=486;text=Busy', { sip: 486, text: 'Busy' }],
    [
      'SIP ;cause=580 ;text="Precondition Failure",Q.850;cause=16;text="Terminated"',
      { q850: 16, sip: 580, text: 'Precondition Failure' },
    ],
    ['Q.850;text="a, b; \\"c\\" \\\\d";cause=1', { q850: 1, text: 'a, b; "c" \\d' }],
    ['Q.850;cause=21;location=RLN;text=""', { q850: 21 }],
    ['Q.850;cause=17;cause=16', { q850: 17 }],
    ['Q.850;cause=128,Q.850;cause=-1,Q.850;cause=1e1,Q.850;cause=18', { q850: 18 }],
    ['SIP;cause=99', undefined],
    ['SIP;cause=603;text="v=analytics1;url=https://a.example"', { sip: 603 }],
    ['X.500;cause=5', undefined],
    ['X.500;text="in Klingon"', { text: 'in Klingon' }],
    [
      'Q.850;cause=17;text="never closed, SIP;cause=486',
      { q850: 17, text: 'never closed, SIP;cause=486' },
    ],
    ['Q.850;cause=17;text="a\r\n\tb\u0000c"', { q850: 17, text: 'a b c' }],
    [';;;,,,', undefined],
    ['', undefined],
  ])('%j', (reason, expected) => {
    expect(cause(reason)).toEqual(expected);
  });

  test('is absent without a Reason', () => {
    expect(factsOf(486, 'Busy Here')).toBeUndefined();
  });

  test('is bounded', () => {
    expect(cause(`Q.850;cause=1;text="${'x'.repeat(5_000)}"`)?.text).toHaveLength(200);
    expect(cause(`Q.850;text="${'x'.repeat(199)}😀"`)?.text).toBe('x'.repeat(199));
    expect(cause(`${'Q.850,'.repeat(50)}Q.850;cause=1`)).toBeUndefined();
  });
});

describe('a block by analytics (ATIS-1000099)', () => {
  const full =
    'SIP;cause=603;text="v=analytics1;url=https://redress.example/a?b=1;tel=+12025550199;email=help@redress.example;id=a-1_B";location=RLN';

  test('with all members', () => {
    expect(block(full)).toEqual({
      by: 'redress.example',
      url: 'https://redress.example/a?b=1',
      tel: '+12025550199',
      email: 'help@redress.example',
      id: 'a-1_B',
      location: 'RLN',
      raw: full,
    });
  });

  test.each([
    [
      'Q.850;cause=21;location=LN;text="v=analytics1;tel=+12025550199"',
      { tel: '+12025550199', location: 'LN' },
    ],
    [
      'SIP; cause=603; text="id=7; V=Analytics2 ;url=http://x.example"',
      { id: '7', url: 'http://x.example/', by: 'x.example' },
    ],
    [
      'SIP;cause=603;text="v=analytics1;email=mailto:a@b.example"',
      { email: 'a@b.example', by: 'b.example' },
    ],
    [
      'SIP;cause=603;text="Network Blocked";v=analytics1;url="https://c.example/x";tel="tel:+1-800-555-0100"',
      { url: 'https://c.example/x', by: 'c.example', tel: '+1-800-555-0100' },
    ],
    ['Q.850;cause=21,SIP;cause=603;text="v=analytics1"', {}],
    [
      'SIP;cause=603;text="v=analytics1;url=\\"https://d.example/\\""',
      { url: 'https://d.example/', by: 'd.example' },
    ],
    [
      'SIP;cause=603;text="v=analytics1;url=javascript:alert(1);tel=<b>;email=<x>@y;location=<i>"',
      {},
    ],
    [
      'SIP;cause=603;text="v=analytics1;url=https://never.closed',
      { url: 'https://never.closed/', by: 'never.closed' },
    ],
  ])('%s', (reason, members) => {
    expect(block(reason)).toEqual({ ...members, raw: reason });
    // A proxy may have replaced the reason phrase.
    expect(block(reason, 'Decline')).toEqual({ ...members, raw: reason });
  });

  test('the reason phrase alone is a sign', () => {
    expect(factsOf(603, 'NETWORK  blocked')).toEqual({ block: { raw: '603 NETWORK blocked' } });
    expect(block('Q.850;cause=21;text="Call Rejected"')).toEqual({
      raw: 'Q.850;cause=21;text="Call Rejected"',
    });
  });

  test.each([
    [603, 'Decline', ''],
    [603, 'Declined', 'Q.850;cause=21;text="call rejected"'],
    [603, 'Decline', 'SIP;cause=603;text="version=analytics1"'],
    [603, 'Decline', 'SIP;cause=603;text="v=spam"'],
    [607, 'Unwanted', full],
    [486, 'Network Blocked', full],
  ])('%i %s is none with the Reason %j', (status, phrase, reason) => {
    expect(factsOf(status, phrase, { Reason: reason })?.block).toBeUndefined();
  });

  test('is bounded', () => {
    const long = 'x'.repeat(3_000);
    const parts = `url=https://${long};tel=${long};email=a@${long};id=${long}`;
    const { raw = '', ...rest } = block(`SIP;text="v=analytics1;${parts}"`) ?? {};
    expect(raw).toHaveLength(1_000);
    expect(rest).toEqual({});
    expect(block(`SIP;text="v=analytics1;id=${long}"`)?.id).toHaveLength(64);
  });
});

describe('a 608 (RFC 8688)', () => {
  test.each([
    ['<https://block.example.net/card>;purpose=jwscard', 'https://block.example.net/card'],
    [
      '<http://a.example>;purpose=icon, <https://block.example.net/c,d>;x=1;PURPOSE=JWSCARD',
      'https://block.example.net/c,d',
    ],
  ])('%s', (callInfo, url) => {
    expect(factsOf(608, 'Rejected', { 'Call-Info': callInfo })?.block).toMatchObject({
      by: 'block.example.net',
      url,
    });
  });

  test.each(['', '<https://a.example>;purpose=icon', '<', ';purpose=jwscard'])(
    'is a block without a usable card: %j',
    (callInfo) => {
      const facts = factsOf(608, 'Rejected', { 'Call-Info': callInfo });
      expect(facts?.block?.url).toBeUndefined();
      expect(facts?.block?.raw).toBeTruthy();
    },
  );
});

describe('other facts', () => {
  test('Retry-After of any final response', () => {
    expect(factsOf(486, 'Busy Here', { 'Retry-After': '120 (in a meeting)' })).toEqual({
      retryAfterS: 120,
    });
  });

  test.each([
    [
      '307 isi.edu "Session parameter \'foo\' not understood"',
      "307 Session parameter 'foo' not understood",
    ],
    ['370 a.example:5060 "a, \\"b\\"", 399 b "second"', '370 a, "b"'],
    ['nonsense', 'nonsense'],
    ['', undefined],
  ])('Warning %j', (header, warning) => {
    expect(factsOf(488, 'Not Acceptable Here', { Warning: header })?.warning).toBe(warning);
  });

  test('of a BYE', () => {
    const bye: ReceivedRequest = {
      ...message({ Reason: 'Q.850;cause=31' }),
      method: 'BYE',
      source: 'network',
    };
    expect(endFactsOf(bye)).toEqual({ facts: { cause: { q850: 31 } } });
  });
});

describe('the connected identity', () => {
  test.each([
    ['<sip:+12025550110@carrier.example;user=phone>', '+12025550110'],
    ['"Jane, J." <sip:+1-202-555-0110@c.example>', '+12025550110'],
    ['<sip:jane@pbx.example>, <tel:+1(202)555.0110;phone-context=x>', '+12025550110'],
    ['tel:2025550110', '2025550110'],
    ['<sip:2025550110;ext=7@c.example>', '2025550110'],
    ['"Jane" <sip:jane@pbx.example;transport=tcp>', 'sip:jane@pbx.example'],
    ['<sip:anonymous@anonymous.invalid>', undefined],
    ['<sip:Anonymous@c.example>', undefined],
    [`<sip:${'a'.repeat(500)}@c.example>`, undefined],
    [`<tel:+${'1'.repeat(60)}>`, undefined],
    ['<', undefined],
    ['', undefined],
  ])('%s', (header, identity) => {
    expect(connectedIdentityOf(message({ 'P-Asserted-Identity': header }))).toBe(identity);
  });

  test.each(['id', 'user;critical', 'session;id'])('is private with Privacy: %s', (privacy) => {
    const identity = { 'P-Asserted-Identity': '<tel:+12025550110>', Privacy: privacy };
    expect(connectedIdentityOf(message(identity))).toBeUndefined();
  });
});

describe('hostile values', () => {
  const parts = [
    ...['Q.850', 'SIP', ';', ',', '=', '"', '\\', '\\"', 'cause', 'text', 'v=analytics1', 'url='],
    ...[
      'https://a.example',
      'http://[',
      'tel:',
      '<',
      '>',
      '@',
      '\u0000',
      '\ud83d',
      '😀',
      ' ',
      '\r\n ',
    ],
    ...['purpose=jwscard', 'Network Blocked', '603', '-1', '9'.repeat(30), 'a'.repeat(300)],
  ];

  test('never throw, and never exceed the bounds', () => {
    const random = seeded(3326);
    const pick = () => parts[Math.floor(random() * parts.length)] ?? '';
    const header = () => Array.from({ length: Math.floor(random() * 40) }, pick).join('');
    for (let count = 0; count < 5_000; count += 1) {
      const headers = {
        ...{ Reason: header(), 'Call-Info': header(), Warning: header(), Privacy: '' },
        ...{ 'Retry-After': header(), 'P-Asserted-Identity': header() },
      };
      for (const status of [603, 608]) {
        const facts = factsOf(status, header(), headers);
        expect(JSON.stringify(facts ?? {}).length).toBeLessThan(8_000);
        expect(facts?.block?.raw.length ?? 0).toBeLessThanOrEqual(1_000);
      }
      expect(connectedIdentityOf(message(headers))?.length ?? 0).toBeLessThanOrEqual(256);
    }
  });

  test('of 64 KiB take no noticeable time', () => {
    const start = performance.now();
    for (const unit of [
      '"',
      '\\',
      ';',
      ',',
      '=',
      ';v=',
      'a',
      ' ',
      ';text="',
      '<',
      '@',
      '.',
      '\t',
    ]) {
      const long = unit.repeat(65_536);
      const headers = {
        ...{ Reason: `SIP;text="v=analytics1;${long}`, 'Call-Info': `<${long}>;purpose=jwscard` },
        ...{ Warning: `399 a ${long}`, 'P-Asserted-Identity': long, 'Retry-After': long },
      };
      factsOf(603, long, headers);
      factsOf(608, long, headers);
      connectedIdentityOf(message({ ...headers, Privacy: long }));
    }
    expect(performance.now() - start).toBeLessThan(2_000);
  });
});
