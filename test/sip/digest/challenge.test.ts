// Challenges as far ends write them, and as hostile ones do.

import { describe, expect, test } from 'vitest';
import { parseChallenges } from '../../../src/sip/digest/challenge.ts';
import { seeded } from '../seeded-dice.ts';

const digest = (more: string) => `Digest realm="lab", nonce="abc"${more}`;

describe('challenges', () => {
  test.each([
    ['as the RFCs write it', 'Digest realm="lab", nonce="abc"'],
    ['without spaces', 'Digest realm="lab",nonce="abc"'],
    ['in another case', 'DIGEST Realm="lab", NONCE="abc"'],
    ['without quotes', 'Digest realm=lab, nonce=abc'],
    ['with spaces around everything', '  Digest  realm = "lab" ,, nonce\t=\t"abc" , '],
    ['folded', 'Digest realm="lab",\r\n nonce="abc"'],
    ['with parameters that nobody knows', 'Digest realm="lab", nonce="abc", y="1, z=2"'],
  ])('%s', (_name, header) => {
    expect(parseChallenges(header)).toMatchObject([{ realm: 'lab', nonce: 'abc' }]);
  });

  test('several, on one line or on several that were joined, stay in their order', () => {
    const header =
      'Basic realm="a, b", Digest realm="lab", nonce="1", algorithm=SHA-512-256,Digest realm="lab", nonce="2", algorithm=MD5';

    expect(
      parseChallenges(header).map(({ nonce, algorithmName }) => [nonce, algorithmName]),
    ).toEqual([
      ['1', 'SHA-512-256'],
      ['2', 'MD5'],
    ]);
  });

  test.each([
    [', qop="auth"', 'auth'],
    [', qop=auth', 'auth'],
    [', qop="AUTH-INT, Auth"', 'auth'],
    [', qop="auth-int"', 'auth-int'],
    [', qop="auth-conf"', 'unsupported'],
    [', qop=""', undefined],
    ['', undefined],
  ])('qop of "%s"', (parameter, qop) => {
    expect(parseChallenges(digest(parameter))[0]?.qop).toBe(qop);
  });

  test.each([
    ['stale=true', true],
    ['stale=TRUE', true],
    ['stale="True"', true],
    ['stale=false', false],
    ['stale', false],
  ])('%s', (parameter, isStale) => {
    expect(parseChallenges(digest(`, ${parameter}`))[0]?.isStale).toBe(isStale);
  });

  test.each(['MD6', 'SHA-256-sessions', 'constructor', ''])(
    'algorithm "%s" is unsupported',
    (name) => {
      expect(parseChallenges(digest(`, algorithm="${name}"`))[0]?.algorithm).toBeUndefined();
    },
  );

  test('keeps backslashes, because they are hashed and written back as they came', () => {
    expect(parseChallenges('Digest realm="a\\"b\\\\", nonce="n"')[0]?.realm).toBe('a\\"b\\\\');
  });

  test.each([
    ['no realm', 'Digest nonce="abc"'],
    ['no nonce', 'Digest realm="lab"'],
    ['an empty nonce', 'Digest realm="lab", nonce=""'],
    ['a quote without an end', 'Digest realm="lab", nonce="abc'],
    ['a line break in a value', 'Digest realm="lab", nonce="a\r\nVia: x"'],
    ['a backslash before our own quote', 'Digest realm=lab\\, nonce=abc'],
    ['a control character in a value', 'Digest realm="la\u0000b", nonce="abc"'],
    ['another scheme', 'Negotiate realm="lab", nonce="abc"'],
    ['nothing', ''],
  ])('ignores a challenge with %s', (_name, header) => {
    expect(parseChallenges(header)).toEqual([]);
  });

  test('is bounded in length and number', () => {
    expect(parseChallenges(digest(`, opaque="${'x'.repeat(20_000)}"`))).toEqual([]);
    expect(parseChallenges(Array(1_000).fill('Digest a=b').join(', '))).toEqual([]);
    expect(parseChallenges(Array(100).fill(digest('')).join(', ')).length).toBeLessThan(20);
  });

  test('never throws and takes linear time, whatever arrives', () => {
    const dice = seeded(26);
    const pieces = [
      'Digest',
      ' ',
      ',',
      '=',
      '"',
      '\\',
      'realm',
      'nonce="a"',
      '\r\n ',
      '\t',
      '\u0000',
      'é',
      '\ud800',
    ];
    const pick = () => pieces[Math.floor(dice() * pieces.length)] ?? '';
    for (let round = 0; round < 3_000; round += 1) {
      const header = Array.from({ length: Math.floor(dice() * 60) }, pick).join('');
      for (const { realm, nonce } of parseChallenges(header)) {
        expect(realm + nonce).not.toMatch(/[\r\n\0]/);
      }
    }
    const startedAt = performance.now();
    for (const piece of [' ', '"', '\\', '=', 'a ', 'a=', ',', '="\\', '\r\n ']) {
      parseChallenges(`Digest ${piece.repeat(16_000 / piece.length)}`);
    }
    expect(performance.now() - startedAt).toBeLessThan(1_000);
  });
});
