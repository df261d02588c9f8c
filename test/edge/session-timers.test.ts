// Session timers (RFC 4028) at the carrier's edge, in both roles and with both ways to refresh. A
// second of Session-Expires lasts 5 ms here, so that the 90 s that the RFC requires at least pass
// in half a second. A real drachtio-server has no such clock, and runs only the cases without
// waiting.

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Trunk } from '../../src/sip/trunks/trunks.ts';
import {
  type CallHeaders,
  header,
  RawApplication,
  RawPeer,
} from '../embedded/drachtio/raw-ends.ts';
import { answer, openTrunkWorld, type TrunkWorld } from '../sip/trunk-world.ts';
import { eventually } from '../support/eventually.ts';
import { one, type RawCallee, type RawMessage } from '../support/raw-callee.ts';
import { startEngine, type TestEngine } from '../support/sip-engine.ts';
import { onlyEmbedded } from './engines.ts';

// A machine under load may stand still for a second. A transaction lasts 64 times T1, so it
// survives that.
const timers = { t1Ms: 100, t2Ms: 400, t4Ms: 500, sessionSecondMs: 5 };

describe('session timers of a call', () => {
  let world: TrunkWorld | undefined;

  afterEach(async () => {
    await world?.[Symbol.asyncDispose]();
    world = undefined;
  });

  /** Opens a call that the carrier answers with these headers. */
  const answered = (...headers: string[]) => answeredWith({}, ...headers);

  async function answeredWith(trunk: Partial<Trunk>, ...headers: string[]) {
    world = await openTrunkWorld({ gateways: 1, timers, trunk });
    const [carrier] = world.gateways;
    if (carrier === undefined) throw new Error('a gateway');
    const { leg, observer } = world.place();
    const invite = await carrier.take('INVITE');
    carrier.reply(invite, 200, 'OK', { body: answer, headers });
    await observer.until('answered');
    leg.acknowledge();
    await carrier.take('ACK');
    return { carrier, leg, observer, invite };
  }

  /** Until our ACK arrives, a 200 to an INVITE is sent again, so an answer counts once. */
  const taken = new Set<string>();
  const answerTo = async (carrier: RawCallee, method: string): Promise<RawMessage> => {
    const keyOf = (message: RawMessage) => `${one(message, 'call-id')} ${one(message, 'cseq')}`;
    const isAnswer = (message: RawMessage) =>
      message.method === method && (message.status ?? 0) >= 200 && !taken.has(keyOf(message));
    await eventually(() => carrier.inbox.some(isAnswer), `an answer to ${method}`);
    const found = carrier.inbox.find(isAnswer);
    if (found === undefined) throw new Error('no answer');
    carrier.inbox.splice(carrier.inbox.indexOf(found), 1);
    taken.add(keyOf(found));
    return found;
  };

  onlyEmbedded('refreshes with UPDATE without SDP if the carrier allows UPDATE', async () => {
    const { carrier } = await answered(
      'Session-Expires: 90;refresher=uac',
      'Allow: INVITE, ACK, BYE, CANCEL, UPDATE',
    );

    for (let count = 0; count < 3; count += 1) {
      const refresh = await carrier.take('UPDATE');
      expect(refresh.body).toBe('');
      expect(one(refresh, 'session-expires')).toBe('90;refresher=uac');
      expect(one(refresh, 'min-se')).toBe('90');
      expect(one(refresh, 'supported')).toContain('timer');
      expect(one(refresh, 'contact')).toMatch(/^<sip:/);
      carrier.reply(refresh, 200, 'OK', { headers: ['Session-Expires: 90;refresher=uac'] });
    }
    expect(carrier.has('BYE')).toBe(false);
  });

  onlyEmbedded('repeats the last SDP in a re-INVITE if the carrier lists no UPDATE', async () => {
    const { carrier, invite } = await answered('Session-Expires: 90;refresher=uac');

    for (let count = 0; count < 3; count += 1) {
      const refresh = await carrier.take('INVITE');
      expect(refresh.body).toBe(invite.body);
      carrier.reply(refresh, 200, 'OK', {
        body: answer,
        headers: ['Session-Expires: 90;refresher=uac'],
      });
      expect(one(await carrier.take('ACK'), 'cseq')).toBe(
        one(refresh, 'cseq').replace('INVITE', 'ACK'),
      );
    }
    expect(carrier.has('BYE')).toBe(false);
  });

  onlyEmbedded('goes over to re-INVITE if the carrier refuses UPDATE after all', async () => {
    const { carrier } = await answered('Session-Expires: 90;refresher=uac', 'Allow: UPDATE');

    carrier.reply(await carrier.take('UPDATE'), 501, 'Not Implemented');
    const refresh = await carrier.take('INVITE');
    const headers = ['Session-Expires: 90;refresher=uac'];
    carrier.reply(refresh, 200, 'OK', { body: answer, headers });
    await carrier.take('ACK');

    carrier.reply(await carrier.take('INVITE'), 200, 'OK', { body: answer, headers });
    await carrier.take('ACK');
  });

  onlyEmbedded('goes on refreshing after a re-INVITE and an UPDATE of the carrier', async () => {
    // The refresh is due after 0.9 s, so that it does not cross the requests of the carrier.
    const { carrier, invite } = await answered(
      'Session-Expires: 360;refresher=uac',
      'Allow: UPDATE',
    );

    carrier.request(invite, 'INVITE', { body: answer });
    const ok = await answerTo(carrier, 'INVITE');
    carrier.request(invite, 'ACK');
    expect(one(ok, 'session-expires')).toBe('360;refresher=uas');
    carrier.reply(await carrier.take('UPDATE'), 200, 'OK', {
      headers: ['Session-Expires: 360;refresher=uac'],
    });

    carrier.request(invite, 'UPDATE');
    expect(one(await answerTo(carrier, 'UPDATE'), 'session-expires')).toBe('360;refresher=uas');
    await carrier.take('UPDATE');
    expect(carrier.has('BYE')).toBe(false);
  });

  test('answers a refresh with the interval, the refresher and Require: timer', async () => {
    const { carrier, invite } = await answered('Session-Expires: 1800;refresher=uas');

    for (const method of ['INVITE', 'UPDATE']) {
      for (const refresher of ['uac', 'uas']) {
        carrier.request(invite, method, {
          ...(method === 'INVITE' && { body: answer }),
          headers: ['Supported: timer', `Session-Expires: 1800;refresher=${refresher}`],
        });
        const ok = await answerTo(carrier, method);
        if (method === 'INVITE') carrier.request(invite, 'ACK');

        expect(ok.status).toBe(200);
        expect(one(ok, 'session-expires')).toBe(`1800;refresher=${refresher}`);
        expect(one(ok, 'require')).toBe('timer');
        expect(one(ok, 'supported')).toContain('timer');
      }
    }
  });

  test('does not require session timers of a carrier that cannot do them', async () => {
    const { carrier, invite } = await answered();

    carrier.request(invite, 'UPDATE', { headers: ['Session-Expires: 1800;refresher=uas'] });
    const ok = await answerTo(carrier, 'UPDATE');

    expect(one(ok, 'session-expires')).toBe('1800;refresher=uas');
    expect(one(ok, 'require')).toBe('');
  });

  onlyEmbedded('lets the carrier take over the refreshes, and hangs up without them', async () => {
    // Our first refresh would be due after 4.5 s. The carrier takes over before that.
    const { carrier, invite, observer } = await answered('Session-Expires: 1800;refresher=uac');

    carrier.request(invite, 'UPDATE', {
      headers: ['Supported: timer', 'Session-Expires: 90;refresher=uac'],
    });
    expect(one(await answerTo(carrier, 'UPDATE'), 'session-expires')).toBe('90;refresher=uac');
    const bye = await carrier.take('BYE');

    expect(one(bye, 'reason')).toContain('Session timer expired');
    expect(carrier.has('INVITE')).toBe(false);
    expect((await observer.until('ended')).end).toMatchObject({
      by: 'lost',
      reason: 'Session timer expired',
    });
  });

  test('refuses an interval below 90 s with 422 and Min-SE, and the call goes on', async () => {
    const { carrier, invite, observer } = await answered('Session-Expires: 1800;refresher=uas');

    for (const method of ['INVITE', 'UPDATE']) {
      carrier.request(invite, method, { headers: ['Supported: timer', 'Session-Expires: 89'] });
      const refusal = await answerTo(carrier, method);
      if (method === 'INVITE') carrier.request(invite, 'ACK');
      expect(refusal.status).toBe(422);
      expect(one(refusal, 'min-se')).toBe('90');
    }
    expect(observer.kinds()).not.toContain('ended');
  });

  onlyEmbedded(
    'repeats a refresh with the Min-SE of a 422, a bounded number of times',
    async () => {
      const { carrier } = await answered('Session-Expires: 90;refresher=uac', 'Allow: UPDATE');
      const intervals: string[] = [];

      for (const minimum of [120, 240, 480, 960]) {
        const refresh = await carrier.take('UPDATE');
        intervals.push(`${one(refresh, 'session-expires')} ${one(refresh, 'min-se')}`);
        carrier.reply(refresh, 422, 'Session Interval Too Small', {
          headers: [`Min-SE: ${minimum}`],
        });
      }
      await carrier.take('BYE');

      expect(intervals).toEqual([
        '90;refresher=uac 90',
        '120;refresher=uac 120',
        '240;refresher=uac 240',
        '480;refresher=uac 480',
      ]);
    },
  );

  onlyEmbedded('keeps the longer interval that a 422 has asked for', async () => {
    const { carrier } = await answered('Session-Expires: 90;refresher=uac', 'Allow: UPDATE');

    carrier.reply(await carrier.take('UPDATE'), 422, 'Session Interval Too Small', {
      headers: ['Min-SE: 100'],
    });
    const repeated = await carrier.take('UPDATE');
    const headers = [`Session-Expires: ${one(repeated, 'session-expires')}`];
    carrier.reply(repeated, 200, 'OK', { headers });
    const next = await carrier.take('UPDATE');

    expect(one(repeated, 'session-expires')).toBe('100;refresher=uac');
    expect(one(next, 'session-expires')).toBe('100;refresher=uac');
    expect(one(next, 'min-se')).toBe('100');
  });

  onlyEmbedded.for([408, 481])('hangs up if a refresh gets %i', async (status) => {
    const { carrier, observer } = await answered('Session-Expires: 90;refresher=uac');

    carrier.reply(await carrier.take('INVITE'), status, 'Gone');
    await carrier.take('ACK');
    await carrier.take('BYE');

    await observer.until('ended');
  });

  onlyEmbedded('repeats a refresh that crossed another INVITE after a random delay', async () => {
    const { carrier } = await answered('Session-Expires: 90;refresher=uac');

    carrier.reply(await carrier.take('INVITE'), 491, 'Request Pending');
    await carrier.take('ACK');
    const headers = ['Session-Expires: 90;refresher=uac'];
    carrier.reply(await carrier.take('INVITE'), 200, 'OK', { body: answer, headers });
    await carrier.take('ACK');

    await carrier.take('INVITE');
    expect(carrier.has('BYE')).toBe(false);
  });

  onlyEmbedded('refuses an offer that crosses its refresh with 491', async () => {
    const { carrier, invite } = await answered('Session-Expires: 90;refresher=uac');

    const refresh = await carrier.take('INVITE');
    carrier.request(invite, 'INVITE', { body: answer });
    expect((await answerTo(carrier, 'INVITE')).status).toBe(491);
    carrier.request(invite, 'UPDATE', { body: answer });
    expect((await answerTo(carrier, 'UPDATE')).status).toBe(491);

    carrier.reply(refresh, 200, 'OK', { body: answer });
    await carrier.take('ACK');
  });

  onlyEmbedded('tries a refused refresh again, and hangs up when the session ends', async () => {
    const { carrier } = await answered('Session-Expires: 180;refresher=uac', 'Allow: UPDATE');

    carrier.reply(await carrier.take('UPDATE'), 500, 'Server Internal Error');
    carrier.reply(await carrier.take('UPDATE'), 500, 'Server Internal Error');
    expect(one(await carrier.take('BYE'), 'reason')).toContain('Session timer expired');
  });

  onlyEmbedded('stops refreshing if the answer to a refresh has no Session-Expires', async () => {
    const { carrier } = await answered('Session-Expires: 90;refresher=uac', 'Allow: UPDATE');

    carrier.reply(await carrier.take('UPDATE'), 200, 'OK');
    await new Promise((resolve) => setTimeout(resolve, 90 * timers.sessionSecondMs * 1.5));

    expect(carrier.has('UPDATE') || carrier.has('BYE')).toBe(false);
  });

  onlyEmbedded('holds both sides to the Min-SE of our INVITE; drachtio accepts 90 s', async () => {
    const { carrier, invite } = await answeredWith(
      { sessionTimer: { expiresS: 300, minS: 200 } },
      'Session-Expires: 120;refresher=uac',
      'Allow: UPDATE',
    );

    carrier.request(invite, 'UPDATE', { headers: ['Supported: timer', 'Session-Expires: 199'] });
    const refusal = await answerTo(carrier, 'UPDATE');
    const refresh = await carrier.take('UPDATE');

    expect(one(invite, 'min-se')).toBe('200');
    expect([refusal.status, one(refusal, 'min-se')]).toEqual([422, '200']);
    expect(one(refresh, 'session-expires')).toBe('200;refresher=uac');
    expect(one(refresh, 'min-se')).toBe('200');
  });

  onlyEmbedded('returns to the SDP before an offer that was refused', async () => {
    const engine = await startEngine({ timers });
    const application = await RawApplication.connect(engine);
    const peer = await RawPeer.open(engine);
    const sdp = (version: number) => `v=0\r\no=- 1 ${version} IN IP4 127.0.0.1\r\ns=-\r\n`;
    const offer = (version: number) =>
      `Content-Length: ${sdp(version).length}\r\n\r\n${sdp(version)}`;
    try {
      await application.request(`||\r\nINVITE ${peer.uri} SIP/2.0\r\n${offer(1)}`);
      const contact = `Contact: <${peer.uri}>\r\nSession-Expires: 90;refresher=uac`;
      peer.answer(await peer.inbox.take(/^INVITE /), '200 OK', 'far', contact);
      const notice = await application.inbox.take(/SIP\/2.0 200/);
      const dialogId = notice.split('|')[9] ?? '';
      await application.request(`|${dialogId}\r\nACK sip:placeholder SIP/2.0\r\n\r\n`);
      await application.request(`|${dialogId}\r\nINVITE sip:placeholder SIP/2.0\r\n${offer(2)}`);
      const held = await peer.inbox.take(/^INVITE [\s\S]*o=- 1 2 /);
      expect(header(held, 'Session-Expires')).toBe('90;refresher=uac');
      peer.answer(held, '488 Not Acceptable Here', 'far');
      await application.inbox.take(/SIP\/2.0 488/);

      expect((await peer.inbox.take(/^INVITE /)).endsWith(sdp(1))).toBe(true);
    } finally {
      application.close();
      await peer.close();
      await engine.close();
    }
  });
});

describe('session timers of a call from the network', () => {
  let engine: TestEngine;
  let application: RawApplication;
  let peer: RawPeer;

  const call: CallHeaders = {
    ...{ callId: 'timer-1', cseq: 1 },
    ...{ from: '<sip:far@127.0.0.1>;tag=f', to: '<sip:alice@127.0.0.1>' },
  };

  beforeEach(async () => {
    engine = await startEngine({ timers });
    application = await RawApplication.connect(engine);
    await application.route('invite');
    peer = await RawPeer.open(engine);
  });

  afterEach(async () => {
    application.close();
    await peer.close();
    await engine.close();
  });

  async function answered(extra: string) {
    peer.request('INVITE', call, extra);
    const notice = await application.inbox.take(/\r\nINVITE /);
    await application.request(`${notice.split('|')[8]}|\r\nSIP/2.0 200 OK\r\n\r\n`);
    const ok = await peer.inbox.take(/ 200 OK/);
    const to = header(ok, 'To');
    peer.request('ACK', { ...call, to });
    return { ok, to };
  }

  onlyEmbedded(
    'states the caller’s choice in the 200, and refreshes if it is up to us',
    async () => {
      const { ok } = await answered(
        'Supported: timer\r\nAllow: UPDATE\r\nSession-Expires: 90;refresher=uas\r\n',
      );
      const refresh = await peer.inbox.take(/^UPDATE /);

      expect(header(ok, 'Session-Expires')).toBe('90;refresher=uas');
      expect(header(ok, 'Require')).toBe('timer');
      expect(header(refresh, 'Session-Expires')).toBe('90;refresher=uac');
    },
  );

  onlyEmbedded(
    'leaves the refreshes to a caller that supports them and does not choose',
    async () => {
      const { ok } = await answered('Supported: timer\r\nSession-Expires: 90\r\n');

      expect(header(ok, 'Session-Expires')).toBe('90;refresher=uac');
      expect(header(ok, 'Require')).toBe('timer');
      expect(await peer.inbox.take(/^BYE /)).toContain('Session timer expired');
    },
  );

  onlyEmbedded('refreshes for a caller whose proxy wants session timers', async () => {
    const { ok } = await answered('Session-Expires: 90\r\n');

    expect(header(ok, 'Session-Expires')).toBe('90;refresher=uas');
    expect(header(ok, 'Require')).toBe('');
    await peer.inbox.take(/^INVITE /);
  });
});
