// The contract suite depends on its comparison. The comparison must allow names to differ, if they
// do so consistently, and nothing else.

import { describe, expect, test } from 'vitest';
import { compareControl, compareSip } from './transcripts/comparing.ts';
import { Naming } from './transcripts/naming.ts';

const RECORDED = [
  'INVITE sip:callee@127.0.0.1:5070 SIP/2.0',
  'Via: SIP/2.0/UDP 127.0.0.1;rport;branch=z9hG4bKrecorded',
  'Max-Forwards: 70',
  'From: <sip:1@127.0.0.1:5060>;tag=recordedTag',
  'To: <sip:callee@127.0.0.1:5070>',
  'Call-ID: recorded-call',
  'CSeq: 123026524 INVITE',
  'Content-Length: 0',
  '',
  '',
].join('\r\n');

const LIVE = RECORDED.replaceAll('recorded', 'live')
  .replaceAll('5060', '40001')
  .replaceAll('5070', '40002')
  .replace('127.0.0.1;rport', '127.0.0.1:40001;rport')
  .replace('123026524', '4711');

function naming(): Naming {
  return new Naming(
    new Map([
      [5060, 40_001],
      [5070, 40_002],
    ]),
  );
}

function aspects(recorded: string, live: string, names = naming()): string[] {
  return compareSip(recorded, names.portsToRecorded(live), names).map(({ aspect }) => aspect);
}

describe('comparing a message with the recorded one', () => {
  test('allows other ids, tags, branches, ports and a different first CSeq', () => {
    expect(aspects(RECORDED, LIVE)).toEqual([]);
  });

  test.each([
    ['a changed value', 'Max-Forwards: 70', 'Max-Forwards: 69', 'header Max-Forwards'],
    ['a missing header', 'Max-Forwards: 70\r\n', '', 'header names'],
    ['an added header', 'Content-Length', 'Allow: INVITE\r\nContent-Length', 'header names'],
    ['another spelling', 'Call-ID', 'Call-Id', 'header names'],
    ['another port', ':40002 SIP', ':40003 SIP', 'start line'],
    ['a branch without the cookie', 'z9hG4bK', 'z9hG4b', 'header Via'],
    ['a missing tag', ';tag=liveTag', '', 'header From'],
    ['a body', 'Content-Length: 0\r\n\r\n', 'Content-Length: 0\r\n\r\nv=0', 'body'],
  ])('detects %s', (_what, before, after, aspect) => {
    expect(LIVE).toContain(before);
    expect(aspects(RECORDED, LIVE.replace(before, after))).toContain(aspect);
  });

  test('detects headers in another order', () => {
    const swapped = LIVE.replace(/(Max-Forwards: 70\r\n)(From: .*\r\n)/, '$2$1');

    expect(aspects(RECORDED, swapped)).toEqual(['header names']);
  });

  test('detects a name that changes between messages, and a CSeq that jumps', () => {
    const names = naming();
    const bye = (text: string) =>
      text.replaceAll('INVITE', 'BYE').replace('123026524', '123026525');
    expect(aspects(RECORDED, LIVE, names)).toEqual([]);

    const later = bye(LIVE).replace('4711', '4713').replace('liveTag', 'otherTag');

    expect(aspects(bye(RECORDED), later, names)).toEqual(['header From', 'header CSeq']);
  });

  test('requires that a name of the far end comes back unchanged', () => {
    const names = naming();
    names.toLive('SIP/2.0 200 OK\r\nTo: <sip:callee@127.0.0.1>;tag=theirs\r\n\r\n');
    const withTag = (text: string, tag: string) =>
      text.replace('\r\nCall-ID', `;tag=${tag}\r\nCall-ID`);

    expect(aspects(withTag(RECORDED, 'theirs'), withTag(LIVE, 'ours'), names)).toEqual([
      'header To',
    ]);
  });

  test('compares the byte count of a reply with the message in it', () => {
    const reply = (bytes: number, text: string) =>
      `id|response|request|OK|application|${bytes}|udp|127.0.0.1|5060|10:00:00.000001|6a1c0d2e-0000-4000-8000-000000000000|Msg sent:|\r\n${text}`;
    const live = (bytes: number) => reply(bytes, LIVE).replace('|5060|', '|40001|');
    const compare = (bytes: number) =>
      compareControl(reply(RECORDED.length, RECORDED), live(bytes), naming(), new Set());

    expect(compare(LIVE.length)).toEqual([]);
    expect(compare(LIVE.length + 1).map(({ aspect }) => aspect)).toEqual(['bytes']);
  });
});
