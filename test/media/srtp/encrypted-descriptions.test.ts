// Offer and answer of encrypted audio (RFC 4568, RFC 8643).

import { describe, expect, test } from 'vitest';
import type { MediaEncryption } from '../../../src/calls/media.ts';
import { answerOffer, buildOffer, type LocalMedia, readAnswer } from '../../../src/media/sdp.ts';
import { newCryptoLines } from '../../../src/media/srtp/sdes.ts';

const theirInline = 'd0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj';
const theirs = (tag: number, suite = 'AES_CM_128_HMAC_SHA1_80') =>
  `a=crypto:${tag} ${suite} inline:${theirInline}|2^20`;

function localOf(encryption: MediaEncryption): LocalMedia {
  return {
    ...{ address: '192.0.2.10', port: 20_000, sessionId: '77', codecs: ['PCMU'], encryption },
    crypto: encryption === 'rtp' ? [] : newCryptoLines(),
  };
}

function description(...media: readonly string[]): string {
  const head = ['v=0', 'o=- 1 1 IN IP4 203.0.113.5', 's=-', 'c=IN IP4 203.0.113.5', 't=0 0'];
  return [...head, ...media, ''].join('\r\n');
}

const avp = 'm=audio 4000 RTP/AVP 0';
const savp = 'm=audio 4000 RTP/SAVP 0';
const keyOf = (local: LocalMedia, suite: string) =>
  local.crypto.find(({ key }) => key.suite === suite)?.key;

describe('our offer', () => {
  test('has no key for a trunk without encryption', () => {
    expect(buildOffer(localOf('rtp'), 1)).not.toContain('crypto');
  });

  test('has a key for each suite in a line of RTP/AVP, which every far end reads', () => {
    const offer = buildOffer(localOf('srtp'), 1);

    expect(offer).toContain('RTP/AVP 0 101\r\n');
    expect(offer.match(/a=crypto:\d \S+/g)).toEqual([
      'a=crypto:1 AES_CM_128_HMAC_SHA1_80',
      'a=crypto:2 AES_CM_128_HMAC_SHA1_32',
    ]);
  });

  test('is RTP/SAVP if encryption is required', () => {
    expect(buildOffer(localOf('srtp-required'), 1)).toContain('RTP/SAVP 0 101\r\n');
  });
});

describe('an answer', () => {
  test.each([
    ['srtp', avp],
    ['srtp', savp],
    ['srtp-required', savp],
    ['srtp-required', avp],
  ] as const)('to %s with a key means SRTP (%s)', (encryption, line) => {
    const local = localOf(encryption);
    const remote = readAnswer(description(line, theirs(1)), 4, undefined, local);

    expect(remote?.srtp?.ours).toEqual(keyOf(local, 'AES_CM_128_HMAC_SHA1_80'));
    expect(Buffer.from(remote?.srtp?.theirs.keyAndSalt ?? []).toString('base64')).toBe(theirInline);
  });

  test('chooses the suite by its tag', () => {
    const local = localOf('srtp');
    const remote = readAnswer(
      description(savp, theirs(2, 'AES_CM_128_HMAC_SHA1_32')),
      ...([4, undefined, local] as const),
    );

    expect(remote?.srtp?.ours).toEqual(keyOf(local, 'AES_CM_128_HMAC_SHA1_32'));
  });

  test('without a key means RTP if encryption is only offered', () => {
    const remote = readAnswer(description(avp), 4, undefined, localOf('srtp'));

    expect(remote?.codec).toBe('PCMU');
    expect(remote?.srtp).toBeUndefined();
  });

  test.each([
    ['without a key, although it is required', 'srtp-required', [avp]],
    ['RTP/SAVP without a key', 'srtp', [savp]],
    ['with a tag that we did not offer', 'srtp', [avp, theirs(3)]],
    ['with the tag of another suite', 'srtp', [avp, theirs(1, 'AES_CM_128_HMAC_SHA1_32')]],
    ['with a suite that we do not know', 'srtp-required', [savp, theirs(1, 'F8_128_HMAC_SHA1_80')]],
    ['RTP/SAVP, although we offered no encryption', 'rtp', [savp, theirs(1)]],
  ] as const)('%s is not usable', (_title, encryption, media) => {
    expect(readAnswer(description(...media), 4, undefined, localOf(encryption))).toBeUndefined();
  });
});

test('an answer with our own key is not usable, because our own packets would pass as theirs', () => {
  const local = localOf('srtp-required');
  const [, ourLine] = /(a=crypto:1 .*)\r\n/.exec(buildOffer(local, 1)) ?? [];

  expect(readAnswer(description(savp, `${ourLine}`), 4, undefined, local)).toBeUndefined();
});

describe('a description with a plain line and an encrypted one', () => {
  const both = description(avp, 'm=audio 4002 RTP/SAVP 0', theirs(1));

  test.each(['srtp', 'srtp-required'] as const)('means the encrypted one to %s', (encryption) => {
    const local = localOf(encryption);
    const answer = readAnswer(both, 4, undefined, local);
    expect(answer).toMatchObject({ port: 4_002, srtp: { ours: local.crypto[0]?.key } });

    const again = answerOffer(both, local, 4);
    expect(again?.remote).toMatchObject({ port: 4_002, srtp: { ours: local.crypto[0]?.key } });
    expect(again?.build(2)).toMatch(/m=audio 0 RTP\/AVP 0\r\nm=audio 20000 RTP\/SAVP 0\r\n/);
  });

  test('means the plain one to a trunk without encryption', () => {
    expect(answerOffer(both, localOf('rtp'), 4)?.remote.port).toBe(4_000);
  });

  test('means the plain one if we do not know the suite, unless encryption is required', () => {
    const unknown = description(avp, 'm=audio 4002 RTP/SAVP 0', theirs(1, 'AEAD_AES_256_GCM'));

    expect(answerOffer(unknown, localOf('srtp'), 4)?.remote.port).toBe(4_000);
    expect(answerOffer(unknown, localOf('srtp-required'), 4)).toBeUndefined();
  });
});

describe('a re-offer', () => {
  test('is answered with the same key as before, under its own tag', () => {
    const local = localOf('srtp');
    const again = answerOffer(description(savp, theirs(7)), local, 4);

    const own = Buffer.from(local.crypto[0]?.key.keyAndSalt ?? []).toString('base64');
    expect(again?.build(2)).toContain(`a=crypto:7 AES_CM_128_HMAC_SHA1_80 inline:${own}\r\n`);
    expect(again?.build(2)).toContain('RTP/SAVP 0\r\n');
    expect(again?.remote.srtp?.ours).toEqual(local.crypto[0]?.key);
  });

  test('takes the first suite that we know', () => {
    const media = [savp, theirs(1, 'AEAD_AES_256_GCM'), theirs(2, 'AES_CM_128_HMAC_SHA1_32')];
    const again = answerOffer(description(...media), localOf('srtp'), 4);

    expect(again?.build(2)).toContain('a=crypto:2 AES_CM_128_HMAC_SHA1_32 inline:');
  });

  test('never makes an encrypted trunk plain', () => {
    expect(answerOffer(description(avp), localOf('srtp-required'), 4)).toBeUndefined();
  });

  test('with keys that a plain trunk ignores is answered without', () => {
    const again = answerOffer(description(avp, theirs(1)), localOf('rtp'), 4);

    expect(again?.build(2)).not.toContain('crypto');
    expect(again?.remote.srtp).toBeUndefined();
  });
});

describe('a re-INVITE without SDP is answered with an offer that', () => {
  test.each([
    ['srtp', savp, 'RTP/SAVP'],
    ['srtp', avp, 'RTP/AVP'],
    ['srtp-required', savp, 'RTP/SAVP'],
    ['srtp-required', avp, 'RTP/SAVP'],
  ] as const)('repeats our keys (%s, after %s)', (encryption, line, protocol) => {
    const local = localOf(encryption);
    const shape = answerOffer(description(line, theirs(7)), local, 4)?.shape;
    const offer = buildOffer(local, 3, shape);

    expect(offer).toContain(` ${protocol} 0 `);
    const keys = (text: string) => text.match(/a=crypto:.*/g);
    expect(keys(offer)).toEqual(keys(buildOffer(local, 1)));
    const answer = readAnswer(
      description(savp, theirs(2, 'AES_CM_128_HMAC_SHA1_32')),
      4,
      shape?.numbers,
      local,
    );
    expect(answer?.srtp?.ours).toEqual(local.crypto[1]?.key);
  });
});
