// The examples of the RFCs, and what they don't contain against a second implementation.

import { describe, expect, test } from 'vitest';
import { parseChallenges } from '../../../src/sip/digest/challenge.ts';
import {
  type DigestRequest,
  digestCredentials,
  isAnswerable,
} from '../../../src/sip/digest/digest-response.ts';
import { parametersOf, responseFor } from '../../support/digest-check.ts';

type Example = {
  readonly challenge: string;
  readonly username: string;
  readonly password: string;
  readonly request: Partial<DigestRequest>;
  readonly cnonce: string;
};

function answer({ challenge, username, password, request, cnonce }: Example): string {
  const [first] = parseChallenges(challenge);
  if (first === undefined || !isAnswerable(first)) throw new Error('not answerable');
  const sent = { method: 'GET', uri: '/dir/index.html', body: '', ...request };
  return digestCredentials(first, { username, password }, sent, { count: 1, cnonce });
}

const responseIn = (credentials: string) => /response="([0-9a-f]+)"/.exec(credentials)?.[1];

const mufasa = { username: 'Mufasa', password: 'Circle of Life', request: {} };
const rfc7616 = {
  ...mufasa,
  cnonce: 'f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ',
};
const challenge7616 = (algorithm: string) =>
  `Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm=${algorithm}, nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"`;

describe('digest credentials', () => {
  test('RFC 2617, 3.5: MD5', () => {
    const credentials = answer({
      challenge:
        'Digest realm="testrealm@host.com", qop="auth,auth-int", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", opaque="5ccc069c403ebaf9f0171e9517f40e41"',
      ...{ username: 'Mufasa', password: 'Circle Of Life', request: {}, cnonce: '0a4f113b' },
    });

    expect(credentials).toBe(
      'Digest username="Mufasa", realm="testrealm@host.com", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", uri="/dir/index.html", response="6629fae49393a05397450978507c4ef1", opaque="5ccc069c403ebaf9f0171e9517f40e41", qop=auth, nc=00000001, cnonce="0a4f113b"',
    );
  });

  test.each([
    ['MD5', '8ca523f5e9506fed4657c9700eebdbec'],
    ['SHA-256', '753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1'],
  ])('RFC 7616, 3.9.1: %s', (algorithm, response) => {
    const credentials = answer({ ...rfc7616, challenge: challenge7616(algorithm) });

    expect(responseIn(credentials)).toBe(response);
    expect(credentials).toContain(
      `algorithm=${algorithm}, opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS", qop=auth, nc=00000001`,
    );
  });

  test('RFC 7616, 3.9.2 (corrected by erratum 4897): SHA-512-256, a hashed name in UTF-8', () => {
    const credentials = answer({
      challenge:
        'Digest realm="api@example.org", qop="auth", algorithm=SHA-512-256, nonce="5TsQWLVdgBdmrQ0XsxbDODV+57QdFR34I9HAbC/RVvkK", opaque="HRPCssKJSGjCrkzDg8OhwpzCiGPChXYjwrI2QmXDnsOS", charset=UTF-8, userhash=true',
      username: 'J\u00e4s\u00f8n Doe',
      password: 'Secret, or not?',
      request: { uri: '/doe.json' },
      cnonce: 'NTg6RKcb9boFIAS3KrFK9BGeh+iDa/sm6jUMp2wds69v',
    });

    expect(responseIn(credentials)).toBe(
      '3798d4131c277846293534c3edc11bd8a5e4cdcbff78b05db9d95eeb1cec68a5',
    );
    expect(credentials).toContain(
      'username="793263caabb707a56211940d90411ea4a575adeccb7e360aeb624ed06ece9b0b"',
    );
    expect(credentials).toMatch(/, userhash=true$/);
  });

  const algorithms = [
    'MD5',
    'MD5-sess',
    'SHA-256',
    'SHA-256-sess',
    'SHA-512-256',
    'SHA-512-256-sess',
  ];
  const protections = [
    { qop: '', chosen: undefined },
    { qop: ', qop="auth"', chosen: 'auth' },
    { qop: ', qop="auth-int"', chosen: 'auth-int' },
    { qop: ', qop="auth-int,auth"', chosen: 'auth' },
  ];
  const body = 'Signal=5\r\nDuration=160\r\n';
  const alice = { username: 'alice', password: 'pass: "word"' };

  test.each(algorithms.flatMap((algorithm) => protections.map((of) => ({ algorithm, ...of }))))(
    '$algorithm$qop',
    ({ algorithm, qop, chosen }) => {
      const credentials = parametersOf(
        answer({
          challenge: `Digest realm="carrier", nonce="n1", algorithm=${algorithm}${qop}`,
          ...{ ...alice, request: { method: 'INFO', body }, cnonce: 'c1' },
        }),
      );

      expect(credentials['response']).toBe(
        responseFor(credentials, alice, { method: 'INFO', body }),
      );
      expect(credentials['qop']).toBe(chosen);
      expect(credentials['algorithm']).toBe(algorithm);
      const needsCnonce = qop !== '' || algorithm.endsWith('-sess');
      expect(credentials['cnonce']).toBe(needsCnonce ? 'c1' : undefined);
      expect(credentials['nc']).toBe(qop === '' ? undefined : '00000001');
    },
  );

  test('a challenge without an algorithm is answered with MD5, which the answer does not name', () => {
    const credentials = parametersOf(
      answer({
        challenge: 'Digest realm="carrier",nonce="n1"',
        ...{ ...alice, request: { method: 'INVITE' }, cnonce: 'c1' },
      }),
    );

    expect(credentials['algorithm']).toBeUndefined();
    expect(credentials['response']).toBe(responseFor(credentials, alice, { method: 'INVITE' }));
  });

  test('neither a name nor a URI leaves its quotes or its line', () => {
    const credentials = answer({
      challenge: 'Digest realm="carrier", nonce="n1"',
      username: 'al"ice\\\r\nVia: x',
      password: 'secret',
      request: { uri: 'sip:b"ob@host\r\nRoute: y' },
      cnonce: 'c1',
    });

    expect(credentials).toMatch(/^[^\r\n]+$/);
    expect(credentials).toContain('username="al\\"ice\\\\Via: x", realm=');
    expect(credentials).toContain('uri="sip:b\\"ob@hostRoute: y", response=');
  });
});
