// Tokens of every algorithm that an app may register, and every way to forge them.

import { createHmac, generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto';
import { SignJWT } from 'jose';
import { describe, expect, test } from 'vitest';
import type { JwtAlgorithm } from '../../src/store/apps/app-directory.ts';
import { type PublicKeyAlgorithm, parsePublicKeys } from '../../src/store/apps/jwt-keys.ts';
import { forSuite } from '../support/opened.ts';
import { app, type ProblemDocument, startHarness, unverifiedDetail } from './support.ts';

type Signer = {
  readonly algorithm: JwtAlgorithm;
  /** The key that signs. */
  readonly key: KeyObject | Uint8Array;
  /** The key that is registered. */
  readonly registered: string;
  readonly publicKey?: KeyObject;
};

const pem = (key: KeyObject): string => key.export({ type: 'spki', format: 'pem' }).toString();
const jwk = (key: KeyObject, kid: string) => ({ ...key.export({ format: 'jwk' }), kid });

const generate = {
  RS256: () => generateKeyPairSync('rsa', { modulusLength: 2_048 }),
  ES256: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  EdDSA: () => generateKeyPairSync('ed25519'),
};

function registeredKeys(algorithm: PublicKeyAlgorithm, text: string): string {
  const parsed = parsePublicKeys(text, algorithm);
  if (!parsed.ok) throw new Error(parsed.message);
  return parsed.jwks;
}

function withKeyPair(algorithm: PublicKeyAlgorithm): Signer {
  const { privateKey, publicKey } = generate[algorithm]();
  const registered = registeredKeys(algorithm, pem(publicKey));
  return { algorithm, key: privateKey, registered, publicKey };
}

function withSecret(algorithm: JwtAlgorithm): Signer {
  const secret = randomBytes(48).toString('base64url');
  return { algorithm, key: Buffer.from(secret), registered: secret };
}

const signers: Readonly<Record<JwtAlgorithm, Signer>> = {
  HS256: withSecret('HS256'),
  HS384: withSecret('HS384'),
  HS512: withSecret('HS512'),
  RS256: withKeyPair('RS256'),
  ES256: withKeyPair('ES256'),
  EdDSA: withKeyPair('EdDSA'),
};
const algorithms = Object.keys(signers) as JwtAlgorithm[];

/** The app `rotating` has two secrets; the app `set` has two public keys with a `kid`. */
const former = withSecret('HS256');
const [now, next, stranger] = [generate.ES256(), generate.ES256(), generate.ES256()];
const directory = new Map(
  [
    ...algorithms.map((algorithm) => {
      const { registered } = signers[algorithm];
      return app({ appId: algorithm, jwtAlgorithm: algorithm, jwtKeys: [registered] });
    }),
    app({ appId: 'rotating', jwtKeys: [signers.HS256.registered, former.registered] }),
    app({
      appId: 'set',
      jwtAlgorithm: 'ES256',
      jwtKeys: [
        registeredKeys(
          'ES256',
          JSON.stringify({ keys: [jwk(now.publicKey, 'now'), jwk(next.publicKey, 'next')] }),
        ),
      ],
    }),
  ].map((known) => [known.appId, known]),
);

const harness = forSuite(() =>
  startHarness({
    apps: { find: async (appId) => directory.get(appId), findByApiKey: async () => undefined },
  }),
);

/** Clients that fail too often are slowed down, so each request comes from a new address. */
let clients = 0;
async function answerTo(auth: string) {
  clients += 1;
  const response = await harness.server.inject({
    url: '/api/public/bot/st-1/calls',
    headers: { auth },
    remoteAddress: `10.0.${clients >> 8}.${clients & 0xff}`,
  });
  return { status: response.statusCode, detail: response.json<ProblemDocument>().detail };
}

const unverified = { status: 401, detail: unverifiedDetail };

type Changes = {
  readonly alg?: string;
  readonly key?: KeyObject | Uint8Array;
  readonly header?: object;
  readonly claims?: object;
  readonly appId?: string;
};

async function token(algorithm: JwtAlgorithm, changes: Changes = {}): Promise<string> {
  const { key, alg = algorithm, header = {}, claims = {}, appId = algorithm } = changes;
  const nowS = Math.floor(Date.now() / 1_000);
  return await new SignJWT({ appId, iat: nowS, exp: nowS + 60, ...claims })
    .setProtectedHeader({ alg, ...header })
    .sign(key ?? signers[algorithm].key);
}

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/** Makes a token by hand, because no library would sign it. */
function forged(header: object, appId: string, sign: (text: string) => string): string {
  const exp = Math.floor(Date.now() / 1_000) + 60;
  const text = `${encode(header)}.${encode({ appId, exp })}`;
  return `${text}.${sign(text)}`;
}

describe.each(algorithms)('an app that registered %s', (algorithm) => {
  const past = Math.floor(Date.now() / 1_000) - 3_600;

  test('is authenticated by a token that its key signed', async () => {
    expect((await answerTo(await token(algorithm))).status).toBe(200);
    const named = await token(algorithm, { header: { kid: 'any', typ: 'JWT' } });
    expect((await answerTo(named)).status).toBe(200);
  });

  test.each<[string, object, RegExp]>([
    ['expired', { exp: past }, /expired/],
    ['not valid yet', { nbf: past + 7_200 }, /not valid yet/],
    ['without an end', { exp: undefined }, /no claim `exp`/],
    ['with an end that is no time', { exp: 'tomorrow' }, /claim `exp` is not valid/],
  ])('is refused with a token that is %s', async (_name, claims, reason) => {
    expect(await answerTo(await token(algorithm, { claims }))).toMatchObject({
      status: 401,
      detail: expect.stringMatching(reason) as string,
    });
  });

  test.each(['none', 'None', 'NONE', 'nOnE'])(
    'is refused with an unsigned token of alg %s',
    async (alg) => {
      for (const signature of ['', 'AAAA']) {
        expect(await answerTo(forged({ alg }, algorithm, () => signature))).toEqual(unverified);
      }
    },
  );

  test('is refused without the signature, or with the signature of another text', async () => {
    const good = await token(algorithm);
    const [header, , signature] = good.split('.');
    const other = encode({ appId: algorithm, exp: 4_102_444_800 });

    for (const bad of [
      good.replace(/[^.]+$/, ''),
      good.replace(/\.[^.]+$/, ''),
      `${header}.${other}.${signature}`,
    ]) {
      expect((await answerTo(bad)).status).toBe(401);
    }
  });

  test('is refused with a token of a key that it did not register', async () => {
    const { key } = algorithm.startsWith('HS')
      ? withSecret(algorithm)
      : withKeyPair(algorithm as PublicKeyAlgorithm);

    expect((await answerTo(await token(algorithm, { key }))).status).toBe(401);
    const { publicKey } = generate.ES256();
    const brought = { jwk: publicKey.export({ format: 'jwk' }), jku: 'https://x.example/jwks' };
    expect((await answerTo(await token(algorithm, { key, header: brought }))).status).toBe(401);
  });

  test.each(algorithms.filter((other) => other !== algorithm))(
    'is refused with a token of another algorithm, %s',
    async (other) => {
      const bad = await token(other, { appId: algorithm });
      const ofNobody = await token(other, { appId: 'nobody' });

      expect(await answerTo(bad)).toEqual(unverified);
      expect(await answerTo(ofNobody)).toEqual(unverified);
    },
  );

  test('is refused with an unknown critical header', async () => {
    const bad = forged({ alg: algorithm, crit: ['x'], x: 1 }, algorithm, () => 'AAAA');

    expect((await answerTo(bad)).status).toBe(401);
  });
});

describe.each(['RS256', 'ES256', 'EdDSA'] as const)('the public key of %s', (algorithm) => {
  const { publicKey, registered } = signers[algorithm];
  if (publicKey === undefined) throw new Error('no key');
  const asSecret: readonly [string, string | Buffer][] = [
    ['PEM', pem(publicKey)],
    ['PEM without its last line end', pem(publicKey).trimEnd()],
    ['DER', publicKey.export({ type: 'spki', format: 'der' })],
    ['JWK', JSON.stringify(publicKey.export({ format: 'jwk' }))],
    ['JWKS as it is stored', registered],
  ];

  test.each(asSecret)('as %s cannot be used as a shared secret', async (_name, secret) => {
    for (const [alg, hash] of [
      ['HS256', 'sha256'],
      ['HS384', 'sha384'],
      ['HS512', 'sha512'],
    ] as const) {
      const swapped = forged({ alg, typ: 'JWT' }, algorithm, (text) =>
        createHmac(hash, secret).update(text).digest('base64url'),
      );
      expect(await answerTo(swapped)).toEqual(unverified);
    }
  });
});

test.each(['RS384', 'RS512', 'PS256'])('a key of RS256 is not accepted for %s', async (alg) => {
  expect((await answerTo(await token('RS256', { alg }))).status).toBe(401);
});

describe('in the grace time of a rotation', () => {
  test('accepts tokens of the new and of the former secret', async () => {
    for (const { key } of [signers.HS256, former]) {
      const good = await token('HS256', { key, appId: 'rotating' });
      expect((await answerTo(good)).status).toBe(200);
    }
  });

  test('names the wrong claim of a token of the former secret', async () => {
    const bad = await token('HS256', { key: former.key, appId: 'rotating', claims: { exp: 1 } });

    expect(await answerTo(bad)).toEqual({
      status: 401,
      detail: 'The token has expired (claim `exp`).',
    });
  });
});

describe('with several public keys', () => {
  const signed = async (key: KeyObject, header: object = {}) =>
    (await answerTo(await token('ES256', { key, header, appId: 'set' }))).status;

  test('a token names the key that signed it', async () => {
    expect(await signed(now.privateKey, { kid: 'now' })).toBe(200);
    expect(await signed(next.privateKey, { kid: 'next' })).toBe(200);
  });

  test('a token without a kid may be signed by any of them', async () => {
    expect(await signed(now.privateKey)).toBe(200);
    expect(await signed(next.privateKey)).toBe(200);
    expect(await signed(stranger.privateKey)).toBe(401);
  });

  test('a token is refused if it names another key, or an unknown one', async () => {
    expect(await signed(now.privateKey, { kid: 'next' })).toBe(401);
    expect(await signed(now.privateKey, { kid: 'former' })).toBe(401);
    expect(await signed(stranger.privateKey, { kid: 'now' })).toBe(401);
  });

  test('a kid that is not a text is ignored', async () => {
    expect(await signed(stranger.privateKey, { kid: 7 })).toBe(401);
  });
});
