// SRTP against the test vectors of RFC 3711, and over lines that lose, repeat, reorder and forge.

import { createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { writeRtpHeader } from '../../../src/media/rtp/rtp-packet.ts';
import { KeyStream } from '../../../src/media/srtp/key-stream.ts';
import { PacketTag } from '../../../src/media/srtp/packet-tag.ts';
import {
  type SrtpKey,
  type SrtpSuite,
  sessionKeys,
  srtpSuites,
} from '../../../src/media/srtp/srtp-keys.ts';
import { SrtpReceiver } from '../../../src/media/srtp/srtp-receiver.ts';
import { SrtpSender } from '../../../src/media/srtp/srtp-sender.ts';

const bytes = (hex: string) => Uint8Array.from(Buffer.from(hex, 'hex'));
const hex = (data: Uint8Array) => Buffer.from(data).toString('hex').toUpperCase();

const keyOf = (suite: SrtpSuite, first = 1): SrtpKey => ({
  suite,
  keyAndSalt: Uint8Array.from({ length: 30 }, (_, index) => (index * 7 + first) & 0xff),
});

function packet(sequence: number, { ssrc = 0xcafe_babe, payloadBytes = 160 } = {}): Uint8Array {
  const data = new Uint8Array(12 + payloadBytes).fill(sequence & 0xff);
  const fields = { payloadType: 0, marker: false, timestamp: sequence * 160, ssrc };
  writeRtpHeader(data, { ...fields, sequence: sequence & 0xffff });
  return data;
}

describe('RFC 3711, appendix B', () => {
  test('B.2: the key stream of AES in counter mode', () => {
    const keys = {
      encryption: bytes('2B7E151628AED2A6ABF7158809CF4F3C'),
      salt: bytes('F0F1F2F3F4F5F6F7F8F9FAFBFCFD'),
    };
    for (const isMadeAhead of [false, true]) {
      const data = new Uint8Array(48);

      new KeyStream(keys, isMadeAhead).apply(data, 0, data.length, 0, 0);

      expect(hex(data)).toBe(
        'E03EAD0935C95E80E166B16DD92B4EB4D23513162B02D0F72A43A2FE4A5F97AB41E95B3BB0A2E8DD477901E4FCA894C0',
      );
    }
  });

  test('B.3: the session keys', () => {
    const keyAndSalt = bytes('E1F97A0D3E018BE0D64FA32C06DE41390EC675AD498AFEEBB6960B3AABE6');

    const keys = sessionKeys({ suite: 'AES_CM_128_HMAC_SHA1_80', keyAndSalt }, 'rtp');

    expect(hex(keys.encryption)).toBe('C61E7A93744F39EE10734AFE3FF7A087');
    expect(hex(keys.salt)).toBe('30CBBC08863D8C85D49DB34A9AE1');
    expect(hex(keys.authentication)).toBe('CEBE321F6FF7716B6FD4AB49AF256A156D38BAA4');
  });
});

test('the tag is HMAC-SHA1 over the packet and its rollover counter', () => {
  const key = bytes('CEBE321F6FF7716B6FD4AB49AF256A156D38BAA4');
  const tag = new PacketTag(key, 10);
  for (let end = 0; end < 1_500; end += 13) {
    const data = Uint8Array.from({ length: end + 10 }, (_, at) => (at * 31 + end) & 0xff);
    tag.write(data, end, 0x89_ab_cd_ef);

    const hmac = createHmac('sha1', key).update(data.subarray(0, end)).update(bytes('89ABCDEF'));
    expect(hex(data.subarray(end))).toBe(hex(hmac.digest().subarray(0, 10)));
    expect(tag.matches(data, end, 0x89_ab_cd_ef)).toBe(true);
    expect(tag.matches(data, end, 0)).toBe(false);
  }
});

describe('libsrtp’s reference packet', () => {
  const key: SrtpKey = {
    suite: 'AES_CM_128_HMAC_SHA1_80',
    keyAndSalt: bytes('E1F97A0D3E018BE0D64FA32C06DE41390EC675AD498AFEEBB6960B3AABE6'),
  };
  const plain = `800F1234DECAFBADCAFEBABE${'AB'.repeat(16)}`;
  const encrypted = '800F1234DECAFBADCAFEBABE4E55DC4CE79978D88CA4D215949D2402B78D6ACC99EA179B8DBB';

  test('is what we send', () => {
    expect(hex(new SrtpSender(key).protect(bytes(plain)))).toBe(encrypted);
  });

  test('is what we receive', () => {
    expect(hex(new SrtpReceiver(key).unprotect(bytes(encrypted)) as Uint8Array)).toBe(plain);
  });

  test('of RTCP', () => {
    const report = '81C8000BCAFEBABEABABABABABABABABABABABABABABABAB';
    const protectedReport = `81C8000BCAFEBABE7128035BE487B9BDBEF89041F977A5A880000001993E08CD54D6C1230798`;
    const sender = new SrtpSender(key);
    sender.protectRtcp(bytes(report));

    expect(hex(sender.protectRtcp(bytes(report)))).toBe(protectedReport);
    expect(hex(new SrtpReceiver(key).unprotectRtcp(bytes(protectedReport)) as Uint8Array)).toBe(
      report,
    );
  });
});

describe.each(srtpSuites)('%s', (suite) => {
  test('hears the packets of the same key, whatever their length', () => {
    const sender = new SrtpSender(keyOf(suite));
    const receiver = new SrtpReceiver(keyOf(suite));
    for (const payloadBytes of [0, 1, 80, 159, 160, 161, 240, 480, 1_200]) {
      const plain = packet(payloadBytes, { payloadBytes });
      expect(receiver.unprotect(sender.protect(plain))).toEqual(plain);
    }
  });

  test('hears no packet of another key, and none that was changed', () => {
    const sender = new SrtpSender(keyOf(suite));
    const receiver = new SrtpReceiver(keyOf(suite, 2));
    expect(receiver.unprotect(sender.protect(packet(1)))).toBe('forged');

    const own = new SrtpReceiver(keyOf(suite));
    const sealed = sender.protect(packet(2));
    for (let at = 0; at < sealed.length; at += 1) {
      const changed = sealed.slice();
      changed[at] = (changed[at] as number) ^ 1;
      expect(own.unprotect(changed)).toMatch(/^(forged|malformed)$/);
    }
    expect(own.unprotect(sealed)).toEqual(packet(2));
  });

  test('hears late packets around the wrap, each once', () => {
    const sender = new SrtpSender(keyOf(suite));
    const receiver = new SrtpReceiver(keyOf(suite));
    const sent = new Map<number, Uint8Array>();
    for (let index = 65_530; index <= 65_540; index += 1)
      sent.set(index, sender.protect(packet(index)).slice());
    for (const index of [65_530, 65_535, 65_536, 65_537, 65_534, 65_538]) {
      const sealed = sent.get(index) as Uint8Array;
      expect(receiver.unprotect(sealed.slice())).toEqual(packet(index));
      expect(receiver.unprotect(sealed.slice())).toBe('replayed');
    }
  });

  test('follows the counter over a loss of 2 s across the wrap', () => {
    const sender = new SrtpSender(keyOf(suite));
    const receiver = new SrtpReceiver(keyOf(suite));
    for (let index = 65_480; index <= 65_700; index += 1) {
      const sealed = sender.protect(packet(index));
      const isLost = index > 65_486 && index <= 65_586;
      if (!isLost) expect(receiver.unprotect(sealed)).toEqual(packet(index));
    }
  });

  test('hears a packet that is 127 late, and not one that is 128 late', () => {
    const sender = new SrtpSender(keyOf(suite));
    const receiver = new SrtpReceiver(keyOf(suite));
    const sent = Array.from({ length: 129 }, (_, index) =>
      sender.protect(packet(1_000 + index)).slice(),
    );
    receiver.unprotect((sent[128] as Uint8Array).slice());

    expect(receiver.unprotect((sent[0] as Uint8Array).slice())).toBe('replayed');
    expect(receiver.unprotect((sent[1] as Uint8Array).slice())).toEqual(packet(1_001));
  });

  test('keeps the counter over another key, and begins anew with another SSRC', () => {
    let sender = new SrtpSender(keyOf(suite));
    let receiver = new SrtpReceiver(keyOf(suite));
    for (const index of [65_535, 65_536, 65_537]) {
      expect(receiver.unprotect(sender.protect(packet(index)))).toEqual(packet(index));
    }
    sender = sender.withKey(keyOf(suite, 9));
    receiver = receiver.withKey(keyOf(suite, 9));
    expect(receiver.unprotect(sender.protect(packet(65_538)))).toEqual(packet(65_538));

    const other = new SrtpSender(keyOf(suite, 9));
    const theirs = packet(7, { ssrc: 5 });
    expect(receiver.unprotect(other.protect(theirs))).toEqual(theirs);
  });

  test.each([
    ['goes on', 65_538],
    ['begins anew', 2],
  ])('hears a far end whose counter %s with another key', (_title, next) => {
    const receiver = new SrtpReceiver(keyOf(suite));
    const before = new SrtpSender(keyOf(suite));
    for (const index of [65_535, 65_536, 65_537]) receiver.unprotect(before.protect(packet(index)));
    const again = receiver.withKey(keyOf(suite, 9));
    const after = next > 65_535 ? before.withKey(keyOf(suite, 9)) : new SrtpSender(keyOf(suite, 9));

    const unheard: number[] = [];
    for (let index = next; index < next + 66_000; index += 1) {
      const heard = again.unprotect(after.protect(packet(index)));
      // 66,000 deep comparisons by expect() take half a minute.
      if (typeof heard === 'string' || Buffer.compare(heard, packet(index)) !== 0)
        unheard.push(index);
    }
    expect(unheard).toEqual([]);
  });

  test('accepts no counter but the expected one once the far end uses the new key', () => {
    const receiver = new SrtpReceiver(keyOf(suite));
    const sender = new SrtpSender(keyOf(suite));
    for (const index of [65_535, 65_536]) receiver.unprotect(sender.protect(packet(index)));
    const again = receiver.withKey(keyOf(suite, 9));
    const fromZero = new SrtpSender(keyOf(suite, 9));
    const goingOn = sender.withKey(keyOf(suite, 9));

    expect(again.unprotect(goingOn.protect(packet(65_537)))).toEqual(packet(65_537));
    expect(again.unprotect(fromZero.protect(packet(2)))).toBe('forged');
  });

  test('hears a far end whose packets before the first wrap were lost', () => {
    const receiver = new SrtpReceiver(keyOf(suite));
    const sender = new SrtpSender(keyOf(suite));
    for (const index of [65_534, 65_535, 65_536]) sender.protect(packet(index));

    for (const index of [65_537, 65_538]) {
      expect(receiver.unprotect(sender.protect(packet(index)))).toEqual(packet(index));
    }
  });

  test('hears RTCP, encrypted or only authenticated, each once', () => {
    const sender = new SrtpSender(keyOf(suite));
    const receiver = new SrtpReceiver(keyOf(suite));
    const report = bytes('80C90001CAFEBABE');
    const sealed = sender.protectRtcp(report);

    expect(receiver.unprotectRtcp(sealed.slice())).toEqual(report);
    expect(receiver.unprotectRtcp(sealed.slice())).toBe('replayed');
    expect(receiver.unprotectRtcp(sealed.subarray(1))).toMatch(/^(forged|malformed)$/);
  });

  test('survives any bytes', () => {
    const receiver = new SrtpReceiver(keyOf(suite));
    for (let length = 0; length < 300; length += 1) {
      const noise = Uint8Array.from({ length }, (_, at) => (at * 131 + length * 17) & 0xff);
      expect(receiver.unprotect(noise.slice())).toMatch(/^(forged|malformed|replayed)$/);
      expect(receiver.unprotectRtcp(noise)).toMatch(/^(forged|malformed|replayed)$/);
    }
  });
});
