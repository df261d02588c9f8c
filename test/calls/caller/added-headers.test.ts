// Headers that an application adds to the INVITE of a call, or to the INVITE or REFER of a
// transfer: which are allowed, and which message names the others.

import { describe, expect, test } from 'vitest';
import { checkAddedHeaders } from '../../../src/calls/caller/added-headers.ts';

/** The headers as the trunk lists them. */
const passes = (name: string): boolean => ['p-asserted-identity', 'diversion'].includes(name);
const messagesOf = (headers: Readonly<Record<string, string>>): readonly string[] =>
  checkAddedHeaders({ headers }, { mustPass: 'trusted', passes }, 'bridge.').map(
    ({ path, message }) => `${path} ${message}`,
  );

describe('a header of the application', () => {
  test.each([
    ['X-Ticket', '4711'],
    ['x-note', 'press 1; say "yes"\tthen wait'],
    ['Subject', 'sales'],
    ['User-to-User', '56a390f3d2b7310023a2;encoding=hex'],
    ['X-Empty', ''],
    // The trunk lists these headers, in any spelling.
    ['P-Asserted-Identity', '<sip:4930@carrier.example>'],
    ['DIVERSION', '<sip:100@pbx.example>;reason=no-answer'],
  ])('%s: passes', (name, value) => {
    expect(messagesOf({ [name]: value })).toEqual([]);
  });

  test.each([
    ...['From', 'To', 'Via', 'Contact', 'Route', 'Record-Route', 'Max-Forwards', 'Call-ID', 'CSeq'],
    ...['Refer-To', 'Refer-Sub', 'Referred-By', 'Replaces', 'Event', 'Subscription-State'],
    ...['Authorization', 'Proxy-Authorization', 'Content-Type', 'Content-Length', 'Content-X'],
    ...['Require', 'Proxy-Require', 'Supported', 'Session-Expires', 'Min-SE'],
    // Short forms of these headers.
    ...['f', 't', 'v', 'm', 'i', 'c', 'e', 'l', 'r', 'b', 'o', 'x', 'k', 'u', 'y', 'd', 'j', 'a'],
  ])('%s is reserved for the gateway, in any spelling', (name) => {
    for (const spelled of [name, name.toUpperCase(), name.toLowerCase()]) {
      expect(messagesOf({ [spelled]: 'x' })).toEqual([
        `bridge.headers.${spelled} header ${spelled} cannot be set: the gateway writes it`,
      ]);
    }
  });

  test('Identity has a field of its own', () => {
    expect(messagesOf({ identity: 'x' })).toEqual([
      'bridge.headers.identity header identity cannot be set: the field identity sets it',
    ]);
  });

  test.each([
    ...['P-Preferred-Identity', 'P-Charging-Vector', 'p-x', 'Privacy'],
    ...['History-Info', 'Remote-Party-ID'],
  ])('%s needs a trunk that lists it', (name) => {
    expect(messagesOf({ [name]: 'x' })).toEqual([
      `bridge.headers.${name} header ${name} is not in the passHeaders of its trunk`,
    ]);
  });

  test.each([
    ['no name', ''],
    ['a blank in it', 'X Ticket'],
    ['a line of its own', 'X-Ticket\r\nVia'],
    ['a colon', 'X-Ticket:'],
    ['a letter beyond ASCII', 'X-Überweisung'],
    ['more than 64 characters', `X-${'a'.repeat(63)}`],
  ])('is refused if its name has %s', (_, name) => {
    expect(messagesOf({ [name]: 'x' })).toEqual([
      `bridge.headers.${name} header ${name} is not a legal header name`,
    ]);
  });

  test.each([
    ['a line break', 'x\r\nVia: SIP/2.0/UDP 192.0.2.1'],
    ['a lone line feed', 'x\ny'],
    ['a null', 'x\0'],
    ['letters beyond ASCII', 'grün'],
  ])('is refused if its value has %s', (_, value) => {
    expect(messagesOf({ 'X-Note': value })).toEqual([
      'bridge.headers.X-Note header X-Note has a value with characters outside printable ASCII',
    ]);
  });

  test('may be given only once, whatever its spelling', () => {
    expect(messagesOf({ 'X-Note': '1', 'x-note': '2' })).toEqual([
      'bridge.headers.x-note header x-note is given twice',
    ]);
  });
});

describe('all headers together', () => {
  const many = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`X-${index}`, '']));
  const tooMuch = 'bridge.headers must have at most 16 headers and 2048 bytes';

  test('are at most 16', () => {
    expect(messagesOf(many(16))).toEqual([]);
    expect(messagesOf(many(17))).toEqual([tooMuch]);
  });

  test('have at most 2,048 bytes, as they are in the request', () => {
    expect(messagesOf({ 'X-Note': 'x'.repeat(2_048 - 'X-Note: \r\n'.length) })).toEqual([]);
    expect(messagesOf({ 'X-Note': 'x'.repeat(2_049 - 'X-Note: \r\n'.length) })).toEqual([tooMuch]);
  });
});

describe('a header of the first leg', () => {
  const pathsOf = (headers: Readonly<Record<string, string>>, policy?: 'no trunk') =>
    checkAddedHeaders(
      { headers },
      { mustPass: 'every', ...(policy === undefined ? { passes } : {}) },
    );

  test('passes only if the trunk lists it', () => {
    expect(pathsOf({ Diversion: '<sip:100@pbx.example>' })).toEqual([]);
    expect(pathsOf({ 'X-Foo': '1' })).toEqual([
      {
        path: 'headers.X-Foo',
        message: 'header X-Foo is not in the passHeaders of its trunk',
      },
    ]);
  });

  test('never passes without a trunk', () => {
    expect(pathsOf({ Diversion: '<sip:100@pbx.example>' }, 'no trunk')).toEqual([
      {
        path: 'headers.Diversion',
        message: 'header Diversion needs a trunk with this header in its passHeaders',
      },
    ]);
  });

  test('shares its bytes with identity', () => {
    const errorsOf = (length: number) =>
      checkAddedHeaders(
        { headers: { Diversion: 'x' }, identity: 'x'.repeat(length) },
        { mustPass: 'every', passes },
      ).map(({ path }) => path);
    const headerBytes = 'Diversion: x\r\n'.length;

    expect(errorsOf(2_048 - headerBytes)).toEqual([]);
    expect(errorsOf(2_049 - headerBytes)).toEqual(['headers']);
  });
});
