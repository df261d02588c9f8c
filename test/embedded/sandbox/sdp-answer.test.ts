// The callee's side of offer/answer.

import { describe, expect, test } from 'vitest';
import { readOffer, writeAnswer } from '../../../src/embedded/sandbox/sdp-answer.ts';

const local = { host: '127.0.0.1', port: 40_000, sessionId: 7 };

function offer(...lines: readonly string[]): string {
  const session = ['v=0', 'o=- 1 1 IN IP4 127.0.0.1', 's=-', 'c=IN IP4 127.0.0.1', 't=0 0'];
  return `${[...session, ...lines].join('\r\n')}\r\n`;
}

function answerTo(...lines: readonly string[]): string[] {
  const read = readOffer(offer(...lines));
  return read === undefined ? [] : writeAnswer(read, local, 3).trim().split('\r\n');
}

describe('the SDP answer', () => {
  test('picks the first supported codec, in the order of the offer', () => {
    const answer = answerTo('m=audio 5000 RTP/AVP 18 8 0', 'a=rtpmap:18 G729/8000');

    expect(answer).toContain('m=audio 40000 RTP/AVP 8');
    expect(answer).toContain('a=rtpmap:8 PCMA/8000');
  });

  test('accepts G.711 under a dynamic payload type', () => {
    expect(answerTo('m=audio 5000 RTP/AVP 97', 'a=rtpmap:97 pcmu/8000')).toContain(
      'm=audio 40000 RTP/AVP 97',
    );
  });

  test('accepts telephone-event under the payload type of the offer', () => {
    const answer = answerTo('m=audio 5000 RTP/AVP 0 96', 'a=rtpmap:96 telephone-event/8000');

    expect(answer).toContain('m=audio 40000 RTP/AVP 0 96');
    expect(answer).toContain('a=rtpmap:96 telephone-event/8000');
  });

  test.each([
    ['sendrecv', 'sendrecv'],
    ['sendonly', 'recvonly'],
    ['recvonly', 'sendonly'],
    ['inactive', 'inactive'],
  ])('answers %s with %s', (asked, answered) => {
    expect(answerTo('m=audio 5000 RTP/AVP 0', `a=${asked}`)).toContain(`a=${answered}`);
  });

  test('answers an address of zeros with inactive', () => {
    expect(answerTo('m=audio 5000 RTP/AVP 0', 'c=IN IP4 0.0.0.0')).toContain('a=inactive');
  });

  test('rejects other media lines in their place', () => {
    const answer = answerTo('m=video 6000 RTP/AVP 99', 'm=audio 5000 RTP/AVP 0');

    expect(answer.filter((line) => line.startsWith('m='))).toEqual([
      'm=video 0 RTP/AVP 0',
      'm=audio 40000 RTP/AVP 0',
    ]);
  });

  test('states the session id and the version', () => {
    expect(answerTo('m=audio 5000 RTP/AVP 0')[1]).toBe('o=sandbox 7 3 IN IP4 127.0.0.1');
  });
});

describe('an offer that cannot be answered', () => {
  test.each([
    ['no SDP', ''],
    ['no media', offer()],
    ['no supported codec', offer('m=audio 5000 RTP/AVP 18', 'a=rtpmap:18 G729/8000')],
    ['wide-band G.711', offer('m=audio 5000 RTP/AVP 97', 'a=rtpmap:97 PCMU/16000')],
    ['encrypted audio', offer('m=audio 5000 RTP/SAVP 0')],
    ['a line with port 0', offer('m=audio 0 RTP/AVP 0')],
    ['more lines than any phone has', offer(...Array<string>(20).fill('m=audio 5000 RTP/AVP 0'))],
    ['rubbish', '\u0000m=audio\r\n\r\nm=\r\nc=IN'],
  ])('%s', (_, sdp) => {
    expect(readOffer(sdp)).toBeUndefined();
  });
});
