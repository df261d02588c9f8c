// The callee's half of offer/answer.

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

describe('answer', () => {
  test('takes the first codec that it knows, in the order of the offer', () => {
    const answer = answerTo('m=audio 5000 RTP/AVP 18 8 0', 'a=rtpmap:18 G729/8000');

    expect(answer).toContain('m=audio 40000 RTP/AVP 8');
    expect(answer).toContain('a=rtpmap:8 PCMA/8000');
  });

  test('takes G.711 under a dynamic payload type', () => {
    expect(answerTo('m=audio 5000 RTP/AVP 97', 'a=rtpmap:97 pcmu/8000')).toContain(
      'm=audio 40000 RTP/AVP 97',
    );
  });

  test('takes telephone-event under the number of the offer', () => {
    const answer = answerTo('m=audio 5000 RTP/AVP 0 96', 'a=rtpmap:96 telephone-event/8000');

    expect(answer).toContain('m=audio 40000 RTP/AVP 0 96');
    expect(answer).toContain('a=rtpmap:96 telephone-event/8000');
  });

  test.each([
    ['sendrecv', 'sendrecv'],
    ['sendonly', 'recvonly'],
    ['recvonly', 'sendonly'],
    ['inactive', 'inactive'],
  ])('to %s is %s', (asked, answered) => {
    expect(answerTo('m=audio 5000 RTP/AVP 0', `a=${asked}`)).toContain(`a=${answered}`);
  });

  test('to an address of zeros is inactive', () => {
    expect(answerTo('m=audio 5000 RTP/AVP 0', 'c=IN IP4 0.0.0.0')).toContain('a=inactive');
  });

  test('declines other media lines in their place', () => {
    const answer = answerTo('m=video 6000 RTP/AVP 99', 'm=audio 5000 RTP/AVP 0');

    expect(answer.filter((line) => line.startsWith('m='))).toEqual([
      'm=video 0 RTP/AVP 0',
      'm=audio 40000 RTP/AVP 0',
    ]);
  });

  test('names the session and its version', () => {
    expect(answerTo('m=audio 5000 RTP/AVP 0')[1]).toBe('o=sandbox 7 3 IN IP4 127.0.0.1');
  });
});

describe('nothing to answer', () => {
  test.each([
    ['no SDP', ''],
    ['no media', offer()],
    ['no codec that we speak', offer('m=audio 5000 RTP/AVP 18', 'a=rtpmap:18 G729/8000')],
    ['wide-band G.711', offer('m=audio 5000 RTP/AVP 97', 'a=rtpmap:97 PCMU/16000')],
    ['encrypted audio', offer('m=audio 5000 RTP/SAVP 0')],
    ['a line that is switched off', offer('m=audio 0 RTP/AVP 0')],
    ['more lines than any phone has', offer(...Array<string>(20).fill('m=audio 5000 RTP/AVP 0'))],
    ['rubbish', '\u0000m=audio\r\n\r\nm=\r\nc=IN'],
  ])('%s', (_, sdp) => {
    expect(readOffer(sdp)).toBeUndefined();
  });
});
