// Calls in which something goes wrong or happens in an unusual order. The tests play the far end
// and the application by hand.

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { SipEngine } from '../../../src/embedded/drachtio/engine.ts';
import { eventually } from '../../support/eventually.ts';
import { startEmbeddedEngine } from '../../support/sip-engine.ts';
import { type CallHeaders, header, RawApplication, RawPeer } from './raw-ends.ts';

/**
 * 64 * T1 is 640 ms here: long enough for a round trip on a busy machine, short enough to wait for.
 */
const timers = {
  t1Ms: 10,
  t2Ms: 80,
  t4Ms: 100,
  timerCMs: 300,
  ownerlessMs: 300,
  sessionSecondMs: 3,
};

const sdp = 'v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\n';

describe('the engine, in calls that go wrong', () => {
  let engine: SipEngine;
  let application: RawApplication;
  let peer: RawPeer;

  beforeEach(async () => {
    engine = await startEmbeddedEngine({ timers });
    application = await RawApplication.connect(engine);
    peer = await RawPeer.open(engine);
  });

  afterEach(async () => {
    application.close();
    await peer.close();
    await engine.close();
  });

  async function invite(headers = '') {
    const sent = await application.request(
      `||\r\nINVITE ${peer.uri} SIP/2.0\r\n${headers}Content-Length: ${sdp.length}\r\n\r\n${sdp}`,
    );
    const request = await peer.inbox.take(/^INVITE /);
    return { ...sent, request };
  }

  async function answered() {
    const call = await invite();
    peer.answer(call.request, '200 OK', 'far');
    const notice = await application.inbox.take(/\|sip\|network\|.*\r\nSIP\/2.0 200/);
    const dialogId = notice.split('|')[9] ?? '';
    await application.request(`|${dialogId}\r\nACK sip:placeholder SIP/2.0\r\n\r\n`);
    await peer.inbox.take(/^ACK /);
    return { ...call, dialogId };
  }

  const cancel = (transactionId: string) =>
    application.request(`${transactionId}|\r\nCANCEL ${peer.uri} SIP/2.0\r\n\r\n`);

  test('acknowledges and hangs up, once, a 200 for an INVITE of an engine that died on this port', async () => {
    const call = await invite();
    application.close();
    await engine.close();
    engine = await startEmbeddedEngine({ timers, sipPort: engine.sipPort });
    peer.answer(call.request, '200 OK', 'far');
    const ack = await peer.inbox.take(/^ACK /);
    const bye = await peer.inbox.take(/^BYE /);
    peer.answer(call.request, '200 OK', 'far');
    const again = await peer.inbox.take(/^ACK /);

    expect(header(ack, 'Call-ID')).toBe(header(call.request, 'Call-ID'));
    expect(header(bye, 'From')).toBe(header(call.request, 'From'));
    expect(header(bye, 'To')).toContain('tag=far');
    expect(again).toBe(ack);
    expect(engine.statistics().dropped).toBe(0);
  });

  test('drops a late 200 whose Via has another address', async () => {
    const call = await invite();
    application.close();
    await engine.close();
    engine = await startEmbeddedEngine({ timers, sipPort: engine.sipPort });
    peer.answer(
      call.request.replace(/^Via: .*$/m, 'Via: SIP/2.0/UDP 192.0.2.1:5060;branch=z9hG4bKx'),
      '200 OK',
      'far',
    );
    await eventually(
      () => engine.statistics().dropped === 1,
      'the engine has dropped the response',
    );

    expect(peer.inbox.matching(/^(ACK|BYE) /)).toBe(0);
  });

  test('reaches a callee behind NAT where its 200 came from, with its Contact as request URI', async () => {
    const call = await invite();
    peer.answer(call.request, '200 OK', 'far', 'Contact: <sip:callee@192.168.7.7:5062>');
    const notice = await application.inbox.take(/\|sip\|network\|.*\r\nSIP\/2.0 200/);
    const dialogId = notice.split('|')[9] ?? '';
    await application.request(`|${dialogId}\r\nACK sip:placeholder SIP/2.0\r\n\r\n`);
    await application.request(`|${dialogId}\r\nBYE sip:placeholder SIP/2.0\r\n\r\n`);

    expect(await peer.inbox.take(/^ACK /)).toMatch(/^ACK sip:callee@192\.168\.7\.7:5062 /);
    expect(await peer.inbox.take(/^BYE /)).toMatch(/^BYE sip:callee@192\.168\.7\.7:5062 /);
  });

  test('delays a CANCEL until the first response', async () => {
    const call = await invite();

    expect((await cancel(call.transactionId)).answer).toContain('|OK|application|0|');
    expect(peer.inbox.matching(/^CANCEL /)).toBe(0);
    peer.answer(call.request, '180 Ringing', 'far');
    const sent = await peer.inbox.take(/^CANCEL /);

    expect(header(sent, 'Via')).toBe(header(call.request, 'Via'));
  });

  test('cancels a call that rings for too long', async () => {
    const call = await invite();
    peer.answer(call.request, '180 Ringing', 'far');

    const sent = await peer.inbox.take(/^CANCEL /);
    peer.answer(sent, '200 OK', 'far');
    peer.answer(call.request, '487 Request Terminated', 'far');

    await application.inbox.take(/SIP\/2.0 487/);
    await peer.inbox.take(/^ACK /);
  });

  test('hangs up after the application’s ACK if the CANCEL came after the 200', async () => {
    const call = await invite();
    peer.answer(call.request, '200 OK', 'far');
    const notice = await application.inbox.take(/SIP\/2.0 200/);

    expect((await cancel(call.transactionId)).answer).toContain('|OK|application|0|');
    application.send(`sip||${notice.split('|')[9]}\r\nACK sip:placeholder SIP/2.0\r\n\r\n`);

    await peer.inbox.take(/^ACK /);
    await peer.inbox.take(/^BYE .*ACK-BYE due to cancel race condition/s);
    await application.inbox.take(/\|unsolicited\|.*\r\nBYE /);
  });

  test('acknowledges and hangs up a 200 that the application never acknowledges', async () => {
    const call = await invite();
    peer.answer(call.request, '200 OK', 'far');

    await peer.inbox.take(/^ACK /);
    await peer.inbox.take(/^BYE /);

    await application.inbox.take(/\|unsolicited\|.*\r\nBYE .*ACK timeout/s);
    await eventually(() => engine.statistics().dialogs === 0, 'the engine holds no dialog');
  });

  test('cancels a ringing call when its application goes', async () => {
    const call = await invite();
    peer.answer(call.request, '180 Ringing', 'far');
    await application.inbox.take(/SIP\/2.0 180/);

    application.close();

    const sent = await peer.inbox.take(/^CANCEL /);
    peer.answer(sent, '200 OK', 'far');
    peer.answer(call.request, '487 Request Terminated', 'far');
    await peer.inbox.take(/^ACK /);
    await eventually(
      () => engine.statistics().clientTransactions === 0,
      'the engine holds no client transaction',
    );
  });

  test('cancels a call of a gone application at its first response', async () => {
    const call = await invite();
    application.close();
    await eventually(() => engine.statistics().clients === 0, 'the engine has no application');
    expect(peer.inbox.matching(/^CANCEL /)).toBe(0);

    peer.answer(call.request, '180 Ringing', 'far');

    await peer.inbox.take(/^CANCEL /);
  });

  test('acknowledges and hangs up a 200 for an application that is gone', async () => {
    const call = await invite();
    peer.answer(call.request, '180 Ringing', 'far');
    await application.inbox.take(/SIP\/2.0 180/);
    application.close();
    await eventually(() => engine.statistics().clients === 0, 'the engine has no application');

    peer.answer(call.request, '200 OK', 'far');

    await peer.inbox.take(/^ACK /);
    await peer.inbox.take(/^BYE /);
  });

  test('acknowledges and hangs up an answered call whose application goes before its ACK', async () => {
    const call = await invite();
    peer.answer(call.request, '200 OK', 'far');
    await application.inbox.take(/SIP\/2.0 200/);

    application.close();

    await peer.inbox.take(/^ACK /);
    await peer.inbox.take(/^BYE /);
  });

  test('lets another connection take over a call by its id, with the peer’s requests', async () => {
    const call = await answered();
    application.close();
    await eventually(() => engine.statistics().clients === 0, 'the engine has no application');
    application = await RawApplication.connect(engine);

    await application.request(`|${call.dialogId}\r\nOPTIONS sip:placeholder SIP/2.0\r\n\r\n`);
    peer.answer(await peer.inbox.take(/^OPTIONS /), '200 OK', 'far');
    await application.inbox.take(/SIP\/2.0 200/);
    peer.request('INFO', {
      callId: header(call.request, 'Call-ID'),
      cseq: 1,
      from: `${header(call.request, 'To')};tag=far`,
      to: header(call.request, 'From'),
    });

    expect(await application.inbox.take(/INFO sip:/)).toContain(`|${call.dialogId}|`);
  });

  test('sends an answer and a request in the order of the application', async () => {
    const { request, dialogId } = await answered();
    peer.request('NOTIFY', {
      ...{ callId: header(request, 'Call-ID'), cseq: 1 },
      ...{ from: `${header(request, 'To')};tag=far`, to: header(request, 'From') },
    });
    const notify = await application.inbox.take(/\r\nNOTIFY /);
    const frames = [
      `1|sip|${notify.split('|')[8]}|\r\nSIP/2.0 200 OK\r\n\r\n`,
      `2|sip||${dialogId}\r\nBYE sip:placeholder SIP/2.0\r\n\r\n`,
    ];
    application.sendRaw(frames.map((frame) => `${frame.length}#${frame}`).join(''));

    expect(await peer.inbox.take(/^BYE |CSeq: 1 NOTIFY/)).toMatch(/^SIP\/2.0 200 OK/);
    expect(await peer.inbox.take(/^BYE |CSeq: 1 NOTIFY/)).toMatch(/^BYE /);
  });

  test('hangs up a call that no application takes over', async () => {
    await answered();

    application.close();

    await peer.inbox.take(/^BYE /);
    await eventually(() => engine.statistics().dialogs === 0, 'the engine holds no dialog');
  });

  test('acknowledges every branch of a fork that answers, and hangs up the second', async () => {
    const call = await answered();

    peer.answer(call.request, '200 OK', 'other');
    const ack = await peer.inbox.take(/^ACK /);
    const bye = await peer.inbox.take(/^BYE /);
    peer.answer(bye, '200 OK', 'other');

    expect([header(ack, 'To'), header(bye, 'To')]).toEqual([
      expect.stringContaining(';tag=other'),
      expect.stringContaining(';tag=other'),
    ]);
    expect(engine.statistics().dialogs).toBe(1);
  });

  test('sends the PRACK of a reliable 18x without Contact to the INVITE’s destination and request URI', async () => {
    const hop = `sip:127.0.0.1:${peer.port};lr`;
    const uri = 'sip:bob@far.example';
    const sent = await application.request(
      `||${hop}\r\nINVITE ${uri} SIP/2.0\r\nContent-Length: ${sdp.length}\r\n\r\n${sdp}`,
    );
    const request = await peer.inbox.take(/^INVITE /);
    peer.answer(request, '180 Ringing', 'far', 'Require: 100rel\r\nRSeq: 1');
    const rings = await application.inbox.take(/SIP\/2.0 180/);
    const dialogId = rings.split('|')[9] ?? '';

    const rack = `1 ${Number.parseInt(header(request, 'CSeq'), 10)} INVITE`;
    await application.request(`|${dialogId}\r\nPRACK ${uri} SIP/2.0\r\nRAck: ${rack}\r\n\r\n`);
    const prack = await peer.inbox.take(/^PRACK /);
    peer.answer(prack, '200 OK', 'far');
    peer.answer(request, '200 OK', 'far');
    await application.inbox.take(/SIP\/2.0 200 OK.*CSeq: \d+ INVITE/s);
    await application.request(`|${dialogId}\r\nACK ${uri} SIP/2.0\r\n\r\n`);

    expect(sent.answer).toContain('|OK|');
    expect(prack).toMatch(/^PRACK sip:bob@far\.example SIP\/2\.0\r\n/);
    expect(header(prack, 'To')).toContain(';tag=far');
    expect(header(prack, 'RAck')).toBe(rack);
    expect(await peer.inbox.take(/^ACK /)).toMatch(new RegExp(`^ACK ${peer.uri} `));
    expect(engine.statistics().dialogs).toBe(1);
  });

  test('does not take a 200 to a re-INVITE with another To tag for a fork', async () => {
    const call = await answered();
    const reinvited = await application.request(
      `|${call.dialogId}\r\nINVITE sip:placeholder SIP/2.0\r\nContent-Length: ${sdp.length}\r\n\r\n${sdp}`,
    );
    const request = await peer.inbox.take(/^INVITE .*\r\nTo: [^\r]*;tag=far/s);
    const retagged = request.replace(';tag=far', ';tag=changed');
    peer.answer(retagged, '200 OK', 'unused');
    const notice = await application.inbox.take(/SIP\/2.0 200.*;tag=changed/s);
    await application.request(`|${call.dialogId}\r\nACK sip:placeholder SIP/2.0\r\n\r\n`);
    const ack = await peer.inbox.take(/^ACK /);
    peer.answer(retagged, '200 OK', 'unused');

    expect(await peer.inbox.take(/^ACK /)).toBe(ack);
    expect(header(ack, 'CSeq')).toBe(`${Number.parseInt(header(request, 'CSeq'), 10)} ACK`);
    expect(notice).toContain(`|${reinvited.transactionId}|${call.dialogId}|`);
    expect(peer.inbox.matching(/^BYE /)).toBe(0);
    expect(engine.statistics().dialogs).toBe(1);
  });

  test('sends requests in a call along its recorded route, nearest proxy first', async () => {
    const call = await invite();
    const proxy = await RawPeer.open(engine);
    const near = `<sip:127.0.0.1:${proxy.port};lr>`;
    const headers = `Contact: <sip:bob@far.invalid>\r\nRecord-Route: <sip:far.example;lr>\r\nRecord-Route: ${near}`;
    peer.answer(call.request, '200 OK', 'far', headers);
    const notice = await application.inbox.take(/SIP\/2.0 200/);

    await application.request(`|${notice.split('|')[9]}\r\nACK sip:placeholder SIP/2.0\r\n\r\n`);

    const ack = await proxy.inbox.take(/^ACK /);
    await proxy.close();
    expect(ack.startsWith('ACK sip:bob@far.invalid SIP/2.0')).toBe(true);
    expect(ack.match(/^Route: .*$/gm)).toEqual([`Route: ${near}`, 'Route: <sip:far.example;lr>']);
  });

  test('reports a host name without address as a DNS error', async () => {
    const found = await application.request(
      `||\r\nOPTIONS sip:bob@ip6-localhost.invalid SIP/2.0\r\n\r\n`,
    );

    expect(found.answer).toContain('|OK|application|0|unknown||0|');
    expect(found.answer).not.toContain('\r\nVia:');
    expect(await application.inbox.take(/SIP\/2.0 503 DNS Error/)).toContain(
      '|sip|network|0|unknown||0|',
    );
  });

  test('reports a closed port at once as a 503, over UDP and TCP', async () => {
    const closed = await RawPeer.open(engine);
    await closed.close();
    for (const transport of ['udp', 'tcp']) {
      const uri = `sip:bob@127.0.0.1:${closed.port};transport=${transport}`;
      const { transactionId } = await application.request(`||\r\nINVITE ${uri} SIP/2.0\r\n\r\n`);
      const failure = await application.inbox.take(/SIP\/2.0 503 Service Unavailable/);
      expect(failure).toContain(`|sip|network|0|${transport}||0|`);
      expect(failure).toContain(`|${transactionId}|`);
    }
  });

  test('refreshes the session with the last offer', async () => {
    const call = await invite();
    const contact = `Contact: <${peer.uri}>\r\nSession-Expires: 90;refresher=uac`;
    peer.answer(call.request, '200 OK', 'far', contact);
    const notice = await application.inbox.take(/SIP\/2.0 200/);
    await application.request(`|${notice.split('|')[9]}\r\nACK sip:placeholder SIP/2.0\r\n\r\n`);
    await peer.inbox.take(/^ACK /);

    // On a slow machine, the first INVITE may have been retransmitted.
    const refresh = await peer.inbox.take(/^INVITE .*\r\nTo: [^\r]*;tag=far/s);
    peer.answer(refresh, '200 OK', 'far', contact);

    expect(header(refresh, 'Session-Expires')).toBe('90;refresher=uac');
    expect(refresh.endsWith(sdp)).toBe(true);
    await peer.inbox.take(/^ACK /);
  });

  test('hangs up a session that the peer does not refresh', async () => {
    const call = await invite();
    const contact = `Contact: <${peer.uri}>\r\nSession-Expires: 90;refresher=uas`;
    peer.answer(call.request, '200 OK', 'far', contact);
    const notice = await application.inbox.take(/SIP\/2.0 200/);
    await application.request(`|${notice.split('|')[9]}\r\nACK sip:placeholder SIP/2.0\r\n\r\n`);

    await application.inbox.take(/\|unsolicited\|.*\r\nBYE .*Session timer expired/s);
    await peer.inbox.take(/^BYE /);
  });

  describe('for calls from the network', () => {
    const call: CallHeaders = {
      callId: 'in-1',
      cseq: 1,
      from: '<sip:far@127.0.0.1>;tag=f',
      to: '<sip:alice@127.0.0.1>',
      branch: 'z9hG4bKin1',
    };

    beforeEach(async () => {
      await application.route('invite');
    });

    async function incoming(extra = ''): Promise<string> {
      peer.request('INVITE', call, extra);
      const notice = await application.inbox.take(/\r\nINVITE /);
      await peer.inbox.take(/ 100 Trying/);
      return notice.split('|')[8] ?? '';
    }

    test('answers a caller at once if its application goes away', async () => {
      await incoming();

      application.close();

      await peer.inbox.take(/ 503 Service Unavailable/);
    });

    test('refuses a session interval below the minimum and states the minimum', async () => {
      peer.request('INVITE', call, 'Session-Expires: 60\r\n');

      const refusal = await peer.inbox.take(/ 422 /);

      expect(header(refusal, 'Min-SE')).toBe('90');
    });

    test('retransmits a reliable provisional until its PRACK, which the application answers', async () => {
      const transactionId = await incoming('Supported: 100rel\r\n');

      await application.request(
        `${transactionId}|\r\nSIP/2.0 183 Session Progress\r\nRequire: 100rel\r\n\r\n`,
      );
      const progress = await peer.inbox.take(/ 183 /);
      await peer.inbox.take(/ 183 /);
      const to = header(progress, 'To');
      peer.request(
        'PRACK',
        { ...call, to, cseq: 2, branch: 'z9hG4bKprack' },
        'RAck: 1 1 INVITE\r\n',
      );
      const prack = await application.inbox.take(/\r\nPRACK /);
      await application.request(`${prack.split('|')[8]}|\r\nSIP/2.0 200 OK\r\n\r\n`);

      expect(header(progress, 'RSeq')).toBe('1');
      await peer.inbox.take(/ 200 OK.*CSeq: 2 PRACK/s);
    });

    test('refuses a reliable provisional if the caller does not support it', async () => {
      const transactionId = await incoming();

      const { answer } = await application.request(
        `${transactionId}|\r\nSIP/2.0 183 Session Progress\r\nRequire: 100rel\r\n\r\n`,
      );

      expect(answer).toContain('|NOK|Remote endpoint does not support 100rel');
    });

    test('ends the call and the retransmissions of the 200 on a BYE before the ACK', async () => {
      const transactionId = await incoming();
      await application.request(`${transactionId}|\r\nSIP/2.0 200 OK\r\n\r\n`);
      const to = header(await peer.inbox.take(/ 200 OK/), 'To');

      peer.request('BYE', { ...call, to, cseq: 2, branch: 'z9hG4bKbye' });
      const bye = await application.inbox.take(/\r\nBYE /);
      await application.request(`${bye.split('|')[8]}|\r\nSIP/2.0 200 OK\r\n\r\n`);
      await peer.inbox.take(/ 200 OK.*CSeq: 2 BYE/s);

      await eventually(() => engine.statistics().dialogs === 0, 'the engine holds no dialog');
      await eventually(
        () => engine.statistics().serverTransactions === 0,
        'the engine holds no server transaction',
      );
      expect(application.inbox.matching(/unsolicited/)).toBe(0);
    });

    test('refuses a request that is older than the last one', async () => {
      const transactionId = await incoming();
      await application.request(`${transactionId}|\r\nSIP/2.0 200 OK\r\n\r\n`);
      const to = header(await peer.inbox.take(/ 200 OK/), 'To');
      peer.request('ACK', { ...call, to, branch: 'z9hG4bKack' });

      peer.request('INFO', { ...call, to, cseq: 0, branch: 'z9hG4bKinfo' });

      await peer.inbox.take(/ 500 .*CSeq: 0 INFO/s);
    });

    test('refuses a Call-ID that would break the fields of the control protocol', async () => {
      peer.request('INVITE', { ...call, callId: 'a|b' });

      await peer.inbox.take(/ 400 Bad Request/);
      expect(application.inbox.size).toBe(0);
    });
  });
});
