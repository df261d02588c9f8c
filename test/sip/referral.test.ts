// Sends a REFER and its NOTIFYs over a control connection, in the frames of drachtio-server 0.9.10:
// header names as sofia writes them, headers that it does not know behind Content-Length, and
// several frames in one segment.

import { beforeEach, describe, expect, test } from 'vitest';
import type { ReferEvent } from '../../src/calls/ports.ts';
import { eventually } from '../support/eventually.ts';
import { forEachTest } from '../support/opened.ts';
import {
  headerOf,
  type ScriptedDrachtio,
  type ScriptedInvite,
} from '../support/scripted-drachtio.ts';
import { answerInDialog, openScriptedTrunk } from '../support/scripted-trunk.ts';

const agents = { kind: 'sip', user: 'agents', host: 'pbx.example' } as const;

let drachtio: ScriptedDrachtio;

const trunk = forEachTest(() =>
  openScriptedTrunk({ auth: { username: 'alice', password: 'wonderland' } }),
);
beforeEach(async () => {
  ({ drachtio } = trunk);
});

async function referring(timeoutMs = 5_000) {
  const { leg, invite, observer, answer } = await trunk.placed();
  await answer();
  const reported: string[] = [];
  // Also records the events of the call: the first event decides its outcome.
  observer.observe = ({ kind }) => void reported.push(kind);
  const headers = { 'X-Queue': 'sales' };
  leg.refer({ target: agents, headers, timeoutMs }, (event) => reported.push(wordOf(event)));
  const refer = await drachtio.take('REFER');
  return { leg, invite, refer, reported };
}

function wordOf(event: ReferEvent): string {
  if (event.kind === 'progress') return `progress ${event.sipStatus}`;
  return event.kind === 'failed' ? `failed ${event.failure.sipStatus}` : event.kind;
}

function notify(invite: ScriptedInvite, fragment: string, state: string, id = ''): void {
  const event = [`Event: refer${id}`, `Subscription-State: ${state}`];
  const type = 'Content-Type: message/sipfrag;version=2.0';
  invite.request('NOTIFY', {
    headers: fragment === '' ? event : [...event, type],
    body: fragment,
  });
}

const answers = () => drachtio.frames.filter(({ method }) => method === 'SIP/2.0');

describe('a REFER', () => {
  test('is sent within the dialog, with only the headers that the engine does not add', async () => {
    const { invite, refer } = await referring();

    expect(refer.fields.slice(1)).toEqual(['sip', '', invite.dialogId]);
    // The engine puts the dialog's remote target there.
    expect(refer.sip).toMatch(/^REFER sip:placeholder SIP\/2\.0\r\n/);
    expect(headerOf(refer.sip, 'Refer-To')).toBe('<sip:agents@pbx.example>');
    expect(headerOf(refer.sip, 'Referred-By')).toBe('<sip:100@127.0.0.1:5060>');
    expect(headerOf(refer.sip, 'X-Queue')).toBe('sales');
    // The engine adds these headers, because it knows the dialog. It also adds a Contact (RFC 3515,
    // section 2.2).
    for (const name of ['Via', 'From', 'To', 'Call-ID', 'CSeq', 'Contact', 'Route']) {
      expect(headerOf(refer.sip, name), name).toBeUndefined();
    }
  });

  test('is sent again in the same dialog if it is challenged, with credentials for its own URI', async () => {
    const { invite, refer, reported } = await referring();
    answerInDialog(drachtio, invite, refer, '407 Proxy Authentication Required', [
      'Proxy-Authenticate: Digest realm="carrier", nonce="n1", qop="auth"',
    ]);
    const again = await drachtio.take('REFER');

    expect(again.fields[3]).toBe(invite.dialogId);
    expect(headerOf(again.sip, 'Refer-To')).toBe('<sip:agents@pbx.example>');
    expect(headerOf(again.sip, 'CSeq')).toBeUndefined();
    expect(headerOf(again.sip, 'Proxy-Authorization')).toContain('uri="sip:callee@127.0.0.1:5070"');
    answerInDialog(drachtio, invite, again, '202 Accepted');
    await eventually(() => reported.length > 0, 'it is taken');
    expect(reported).toEqual(['progress 202']);
  });

  test('is reported as accepted before a BYE in the same segment', async () => {
    const { invite, refer, reported } = await referring();
    refer.from.cork();
    answerInDialog(drachtio, invite, refer, '202 Accepted');
    invite.request('BYE');
    refer.from.uncork();
    await eventually(() => reported.includes('ended'), 'the BYE is reported');

    expect(reported).toEqual(['progress 202', 'ended']);
  });

  test('ends once if its NOTIFYs come in the same segment as the answer', async () => {
    const { invite, refer, reported } = await referring();
    refer.from.cork();
    notify(invite, '', 'pending');
    answerInDialog(drachtio, invite, refer, '202 Accepted');
    notify(invite, 'SIP/2.0 180 Ringing\r\n', 'active;expires=60');
    notify(invite, 'SIP/2.0 200 OK\r\n', 'terminated;reason=noresource');
    notify(invite, 'SIP/2.0 486 Busy Here\r\n', 'terminated;reason=noresource');
    refer.from.uncork();
    await eventually(() => answers().length === 4, 'each NOTIFY is answered');

    expect(reported).toEqual(['progress 100', 'progress 202', 'progress 180', 'taken over']);
    expect(answers().map(({ sip: text }) => text.split('\r\n')[0])).toEqual(
      Array.from({ length: 4 }, () => 'SIP/2.0 200 OK'),
    );
  });

  test.each<[string, string | undefined, string]>([
    ['from the far end', '603 Decline', 'failed 603'],
    ['made up by the engine, without an answer', undefined, 'failed 408'],
  ])('fails after a refusal %s', async (_, status, word) => {
    const { invite, refer, reported } = await referring();
    if (status !== undefined) answerInDialog(drachtio, invite, refer, status);
    else {
      drachtio.confirm(refer, 'made-up', `${refer.sip.split('\r\n')[0]}\r\n\r\n`);
      const meta = { transactionId: 'made-up', dialogId: invite.dialogId, madeUp: true };
      drachtio.deliver(refer.from, 'SIP/2.0 408 Request Timeout\r\nCSeq: 101 REFER\r\n\r\n', meta);
    }
    await eventually(() => reported.length > 0, 'it is reported');

    expect(reported).toEqual([word]);
  });

  test('fails if the engine does not send it', async () => {
    const { refer, reported } = await referring();
    drachtio.refuse(refer, 'Server error: unable to find dialog for dialog id provided');
    await eventually(() => reported.length > 0, 'it is reported');

    expect(reported).toEqual(['failed undefined']);
  });

  test('reports the loss of the engine before the call does', async () => {
    const { invite, refer, reported } = await referring();
    answerInDialog(drachtio, invite, refer, '202 Accepted');
    await eventually(() => reported.length > 0, 'it is taken');
    drachtio.dropConnections();
    await eventually(() => reported.includes('ended'), 'the leg has ended');

    expect(reported).toEqual(['progress 202', 'ended']);
  });
});

describe('a second REFER in a dialog', () => {
  const over = 'terminated;reason=noresource';
  const busy = 'SIP/2.0 486 Busy Here\r\n';
  const ok = 'SIP/2.0 200 OK\r\n';

  async function twice() {
    const { leg, invite, refer, reported } = await referring();
    answerInDialog(drachtio, invite, refer, '202 Accepted');
    await eventually(() => reported.length > 0, 'the first is taken');
    leg.refer({ target: agents, timeoutMs: 5_000 }, (event) =>
      reported.push(`2: ${wordOf(event)}`),
    );
    answerInDialog(drachtio, invite, await drachtio.take('REFER'), '202 Accepted', [], 103);
    await eventually(() => reported.length > 1, 'the second is taken');
    const answered = async (count: number): Promise<void> =>
      await eventually(() => answers().length === count, 'each NOTIFY is answered');
    return { invite, reported, answered };
  }

  test('receives the NOTIFYs that name its CSeq', async () => {
    const { invite, reported, answered } = await twice();
    notify(invite, busy, over, ';id=101');
    notify(invite, 'SIP/2.0 180 Ringing\r\n', 'active;expires=60', ';id=103');
    notify(invite, busy, over, ';id=999');
    notify(invite, ok, over, ' ; ID = 103');
    await answered(4);

    expect(reported).toEqual([
      'progress 202',
      '2: progress 202',
      '2: progress 180',
      '2: taken over',
    ]);
    const statuses = answers().map(({ sip: text }) => text.split(' ')[1]);
    expect(statuses).toEqual(['200', '200', '481', '200']);
  });

  test('leaves NOTIFYs without an id to the first REFER until it has ended', async () => {
    const { invite, reported, answered } = await twice();
    notify(invite, busy, over);
    await answered(1);
    expect(reported).toEqual(['progress 202', '2: progress 202']);
    notify(invite, busy, over);
    await answered(2);

    expect(reported.at(-1)).toBe('2: failed 486');
  });

  test.each([
    ['reports nothing more', 'SIP/2.0 100 Trying\r\n', 3],
    ['ends without `terminated`', busy, 2],
  ])('receives NOTIFYs without an id if the first REFER %s', async (_, word, reportedByFirst) => {
    const { leg, invite, refer, reported } = await referring(200);
    answerInDialog(drachtio, invite, refer, '202 Accepted');
    notify(invite, word, 'active;expires=60');
    await eventually(() => reported.length === reportedByFirst, 'the first REFER has ended');
    leg.refer({ target: agents, timeoutMs: 5_000 }, (event) =>
      reported.push(`2: ${wordOf(event)}`),
    );
    answerInDialog(drachtio, invite, await drachtio.take('REFER'), '202 Accepted', [], 103);
    await eventually(() => reported.length > reportedByFirst, 'the second is taken');
    notify(invite, ok, over);
    await eventually(() => reported.length > reportedByFirst + 1, 'the second REFER has ended');

    expect(reported.at(-1)).toBe('2: taken over');
  });
});

test('ignores an unknown id in a NOTIFY if there is only one REFER', async () => {
  const { invite, refer, reported } = await referring();
  answerInDialog(drachtio, invite, refer, '202 Accepted');
  notify(invite, 'SIP/2.0 200 OK\r\n', 'terminated;reason=noresource', ';id=7');
  await eventually(() => reported.length > 1, 'it is reported');

  expect(reported).toEqual(['progress 202', 'taken over']);
});
