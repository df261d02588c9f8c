import { describe, expect, test } from 'vitest';
import { answerOffer, buildOffer, readAnswer } from '../../src/media/sdp.ts';
import { parseSdp } from '../../src/media/sdp-parse.ts';
import { seededRandom } from './support/random.ts';
import { hostileSdp, realAnswers } from './support/sdp-examples.ts';

const local = {
  address: '192.0.2.10',
  port: 20_000,
  codecs: ['PCMU', 'PCMA'] as const,
  encryption: 'rtp' as const,
  crypto: [],
  sessionId: '77',
};

function lines(...text: string[]): string {
  return `${text.join('\r\n')}\r\n`;
}

function answer(...media: string[]): string {
  return lines(
    'v=0',
    'o=- 1 1 IN IP4 203.0.113.5',
    's=-',
    'c=IN IP4 203.0.113.5',
    't=0 0',
    ...media,
  );
}

describe('our offer', () => {
  test('has the codecs of the trunk, in its order', () => {
    const offered = (codecs: readonly ('PCMU' | 'PCMA')[]) =>
      /m=audio .*/.exec(buildOffer({ ...local, codecs }, 1))?.[0];

    expect(offered(['PCMA', 'PCMU'])).toBe(`m=audio ${local.port} RTP/AVP 8 0 101`);
    expect(offered(['PCMA'])).toBe(`m=audio ${local.port} RTP/AVP 8 101`);
  });

  test('has both codecs and telephone events in packets of 20 ms', () => {
    expect(buildOffer(local, 1)).toBe(
      lines(
        'v=0',
        'o=- 77 1 IN IP4 192.0.2.10',
        's=-',
        'c=IN IP4 192.0.2.10',
        't=0 0',
        'm=audio 20000 RTP/AVP 0 8 101',
        'a=rtpmap:0 PCMU/8000',
        'a=rtpmap:8 PCMA/8000',
        'a=rtpmap:101 telephone-event/8000',
        'a=fmtp:101 0-15',
        'a=ptime:20',
        'a=maxptime:150',
        'a=sendrecv',
      ),
    );
  });

  test('uses IPv6 for an IPv6 address', () => {
    const offer = buildOffer({ ...local, address: '2001:db8::1' }, 1);

    expect(offer).toContain('c=IN IP6 2001:db8::1\r\n');
    expect(parseSdp(offer)?.connection).toEqual({ version: 6, address: '2001:db8::1' });
  });
});

describe('answers of real equipment', () => {
  test.each(realAnswers)('$from', ({ sdp, expected, ipVersion }) => {
    expect(readAnswer(sdp, ipVersion ?? 4)).toMatchObject(expected);
  });
});

describe('an answer', () => {
  test('selects its first codec that we support', () => {
    const remote = readAnswer(answer('m=audio 4000 RTP/AVP 18 8 0'), 4);

    expect(remote).toMatchObject({ codec: 'PCMA', payloadType: 8 });
    expect(remote?.receive).toEqual({ PCMU: [0], PCMA: [8] });
  });

  test('accepts telephone events under our payload type and under the far end’s', () => {
    const remote = readAnswer(
      answer('m=audio 4000 RTP/AVP 0 96', 'a=rtpmap:96 telephone-event/8000'),
      4,
    );

    expect(remote?.telephoneEvents).toEqual([96, 101]);
  });

  test('does not give a payload type its usual meaning if it is mapped to another codec', () => {
    const remote = readAnswer(
      answer('m=audio 4000 RTP/AVP 0 8', 'a=rtpmap:0 G729/8000', 'a=rtpmap:8 pcmu/8000/1'),
      4,
    );

    expect(remote).toMatchObject({ codec: 'PCMU', payloadType: 8 });
    expect(remote?.receive).toEqual({ PCMU: [8, 0], PCMA: [] });
  });

  test('prefers the connection line of the media to that of the session', () => {
    const text = answer('m=audio 4000 RTP/AVP 0', 'c=IN IP4 198.51.100.1');

    expect(readAnswer(text, 4)?.address).toBe('198.51.100.1');
  });

  test.each([
    ['the port above the RTP port', [], '203.0.113.5', 4_001],
    ['the port that a=rtcp names', ['a=rtcp:53020'], '203.0.113.5', 53_020],
    [
      'the port and the host that a=rtcp names',
      ['a=rtcp:53020 IN IP4 198.51.100.1'],
      '198.51.100.1',
      53_020,
    ],
    [
      'the RTP host if a=rtcp has a host name',
      ['a=rtcp:53020 IN IP4 pbx.example'],
      '203.0.113.5',
      53_020,
    ],
    ['the port above the RTP port if a=rtcp is invalid', ['a=rtcp:99999999'], '203.0.113.5', 4_001],
  ])('gives the RTCP address: %s', (_, attributes, address, port) => {
    const text = answer('m=audio 4000 RTP/AVP 0', ...attributes);

    expect(readAnswer(text, 4)?.rtcp).toEqual({ address, port });
  });

  test.each([
    ['sendrecv', true, true],
    ['sendonly', false, true],
    ['recvonly', true, false],
    ['inactive', false, false],
  ])('%s at the session or at the media', (direction, weSend, theySend) => {
    const atMedia = answer('m=audio 4000 RTP/AVP 0', `a=${direction}`);
    const atSession = answer(`a=${direction}`, 'm=audio 4000 RTP/AVP 0');

    expect(readAnswer(atMedia, 4)).toMatchObject({ weSend, theySend });
    expect(readAnswer(atSession, 4)).toMatchObject({ weSend, theySend });
  });

  test('skips lines that are refused or not audio', () => {
    const remote = readAnswer(
      answer(
        'm=video 5000 RTP/AVP 31',
        'm=audio 0 RTP/AVP 0',
        'm=audio 6000 RTP/SAVP 0',
        'm=audio 4000 RTP/AVP 8',
      ),
      4,
    );

    expect(remote).toMatchObject({ port: 4000, codec: 'PCMA' });
  });

  test.each([
    ['nothing', ''],
    ['no SDP at all', '<xml/>'],
    ['no media', answer()],
    ['port 0', answer('m=audio 0 RTP/AVP 0')],
    ['no codec that we support', answer('m=audio 4000 RTP/AVP 18 9')],
    [
      'telephone events only',
      answer('m=audio 4000 RTP/AVP 101', 'a=rtpmap:101 telephone-event/8000'),
    ],
    [
      'wideband under the name of our codec',
      answer('m=audio 4000 RTP/AVP 96', 'a=rtpmap:96 PCMU/16000'),
    ],
    ['SRTP', answer('m=audio 4000 RTP/SAVP 0')],
    ['fax', answer('m=image 4000 udptl t38')],
    [
      'no address',
      lines('v=0', 'o=- 1 1 IN IP4 1.2.3.4', 's=-', 't=0 0', 'm=audio 4000 RTP/AVP 0'),
    ],
    ['a host name', answer('m=audio 4000 RTP/AVP 0', 'c=IN IP4 media.example.com')],
    ['multicast', answer('m=audio 4000 RTP/AVP 0', 'c=IN IP4 224.2.1.1/127')],
    ['broadcast', answer('m=audio 4000 RTP/AVP 0', 'c=IN IP4 255.255.255.255')],
    ['IPv6 for an IPv4 socket', answer('m=audio 4000 RTP/AVP 0', 'c=IN IP6 2001:db8::1')],
    ['a port beyond 65535', answer('m=audio 70000 RTP/AVP 0')],
  ])('is unusable with %s', (_, text) => {
    expect(readAnswer(text, 4)).toBeUndefined();
  });
});

describe('the length of packets', () => {
  test.each([
    ['no maxptime', [], undefined],
    ['a maxptime', ['a=maxptime:60'], 480],
    ['a maxptime below our packets', ['a=ptime:10', 'a=maxptime:10'], 80],
    ['a maxptime below what makes sense', ['a=maxptime:1'], 40],
    ['a maxptime of 0', ['a=maxptime:0'], undefined],
    ['a maxptime that is no number', ['a=maxptime:short'], undefined],
    ['an enormous maxptime', [`a=maxptime:${'9'.repeat(400)}`], undefined],
    ['only a ptime', ['a=ptime:60'], undefined],
  ])('is limited by the far end: %s', (_, attributes, samples) => {
    const remote = readAnswer(answer('m=audio 4000 RTP/AVP 0', ...attributes), 4);

    expect(remote).toMatchObject({ codec: 'PCMU' });
    expect(remote?.maxPacketSamples).toBe(samples);
  });
});

describe('a re-offer', () => {
  const audio = ['m=audio 4000 RTP/AVP 8 0 96', 'a=rtpmap:96 telephone-event/8000'];

  function reply(text: string): string | undefined {
    return answerOffer(text, local, 4)?.build(2);
  }

  test('is answered with the common codecs, in the order and with the numbers of the offer', () => {
    expect(reply(answer(...audio))).toBe(
      lines(
        'v=0',
        'o=- 77 2 IN IP4 192.0.2.10',
        's=-',
        'c=IN IP4 192.0.2.10',
        't=0 0',
        'm=audio 20000 RTP/AVP 8 0 96',
        'a=rtpmap:8 PCMA/8000',
        'a=rtpmap:0 PCMU/8000',
        'a=rtpmap:96 telephone-event/8000',
        'a=fmtp:96 0-15',
        'a=ptime:20',
        'a=maxptime:150',
        'a=sendrecv',
      ),
    );
  });

  test.each([
    ['sendonly', 'recvonly'],
    ['recvonly', 'sendonly'],
    ['inactive', 'inactive'],
    ['sendrecv', 'sendrecv'],
  ])('%s is answered %s', (offered, answered) => {
    expect(reply(answer(...audio, `a=${offered}`))).toContain(`a=${answered}\r\n`);
  });

  test('with the old hold (0.0.0.0) stops our packets', () => {
    const held = answerOffer(answer(...audio, 'c=IN IP4 0.0.0.0'), local, 4);

    expect(held?.remote).toMatchObject({ weSend: false, theySend: true, addressWithheld: true });
    expect(held?.build(2)).toContain('a=recvonly\r\n');
  });

  test('has every media line answered in order, unsupported lines with port 0', () => {
    const text = reply(answer('m=video 5000 RTP/AVP 31 32', ...audio, 'm=image 6000 udptl t38'));
    const mediaLines = text?.split('\r\n').filter((line) => line.startsWith('m='));

    expect(mediaLines).toEqual([
      'm=video 0 RTP/AVP 31 32',
      'm=audio 20000 RTP/AVP 8 0 96',
      'm=image 0 udptl t38',
    ]);
  });

  test('is refused if it has only fax, or no codec that we support', () => {
    expect(reply(answer('m=image 6000 udptl t38'))).toBeUndefined();
    expect(reply(answer('m=audio 4000 RTP/AVP 9'))).toBeUndefined();
  });
});

describe('hostile descriptions', () => {
  test.each(hostileSdp)('$name', ({ sdp }) => {
    expect(() => [readAnswer(sdp, 4), answerOffer(sdp, local, 4)?.build(2)]).not.toThrow();
  });

  test('never throw in 4,000 mutations of real answers, and give values in range', () => {
    const random = seededRandom(4_566);
    const pick = (count: number) => Math.floor(random() * count);
    for (let round = 0; round < 4_000; round += 1) {
      const text = mutate(realAnswers[pick(realAnswers.length)]?.sdp ?? '', pick);
      const remote = readAnswer(text, round % 2 === 0 ? 4 : 6);
      expectCleanLines(answerOffer(text, local, 4)?.build(2) ?? '');
      if (remote === undefined) continue;
      expect(remote.port).toBeGreaterThan(0);
      expect(remote.port).toBeLessThan(65_536);
      expect(remote.payloadType).toBeLessThan(128);
    }
  });

  test('add no line to our answer', () => {
    const text = answer('m=audio 4000 RTP/AVP 0', 'm=vi\u0000deo 5000 RTP/AVP 31\ra=evil');

    expectCleanLines(answerOffer(text, local, 4)?.build(2) ?? '');
  });
});

function expectCleanLines(text: string): void {
  expect(text).toMatch(/^(?:[vosctma]=[\x20-\x7e]+\r\n)*$/);
}

function mutate(text: string, pick: (count: number) => number): string {
  const characters = text.split('');
  for (let change = pick(6); change >= 0; change -= 1) {
    const at = pick(characters.length);
    const kind = pick(5);
    if (kind === 0) characters.splice(at, pick(12));
    else if (kind === 1) characters.splice(at, 0, ...characters.slice(at, at + pick(40)));
    else if (kind === 2) characters[at] = String.fromCharCode(pick(300));
    else if (kind === 3)
      characters[at] = String(
        pick(10)
          .toString()
          .repeat(1 + pick(12)),
      );
    else characters.splice(at, 0, '\r\n');
  }
  return characters.join('');
}
