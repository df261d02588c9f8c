// Unmodified drachtio-srf on both sides: one engine places calls, another receives them.

import type Srf from 'drachtio-srf';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { SipEngine } from '../../../src/embedded/drachtio/engine.ts';
import { eventually } from '../../support/eventually.ts';
import { startEmbeddedEngine } from '../../support/sip-engine.ts';
import { connectSrf } from './srf-support.ts';

const sdp = (port: number): string =>
  `v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio ${port} RTP/AVP 0\r\na=sendrecv\r\n`;

describe.each(['udp', 'tcp'])('drachtio-srf through two engines over %s', (transport) => {
  let caller: SipEngine;
  let callee: SipEngine;
  let callerSrf: Srf;
  let calleeSrf: Srf;
  let onInvite: (req: Srf.SrfRequest, res: Srf.SrfResponse) => void = () => undefined;
  const target = (): string => `sip:bob@127.0.0.1:${callee.sipPort};transport=${transport}`;

  beforeAll(async () => {
    caller = await startEmbeddedEngine();
    callee = await startEmbeddedEngine();
    callerSrf = await connectSrf(caller);
    calleeSrf = await connectSrf(callee);
    calleeSrf.invite((req, res) => onInvite(req, res));
  });

  afterAll(async () => {
    callerSrf?.disconnect();
    calleeSrf?.disconnect();
    await caller?.close();
    await callee?.close();
  });

  async function answeredCall() {
    const answered = new Promise<Srf.Dialog>((resolve) => {
      onInvite = (req, res) => {
        res.send(180);
        void calleeSrf.createUAS(req, res, { localSdp: sdp(20_000) }).then(resolve);
      };
    });
    const provisionals: number[] = [];
    const uac = await callerSrf.createUAC(
      target(),
      { localSdp: sdp(10_000) },
      { cbProvisional: (response) => provisionals.push(response.status) },
    );
    return { uac, uas: await answered, provisionals };
  }

  test('rings and answers, and the caller hangs up', async () => {
    const { uac, uas, provisionals } = await answeredCall();
    const ended = new Promise((resolve) => uas.on('destroy', resolve));

    uac.destroy();
    await ended;

    expect(provisionals).toEqual([180]);
    expect(uac.remote.sdp).toBe(sdp(20_000));
    expect(uas.remote.sdp).toBe(sdp(10_000));
    await eventually(
      () => caller.statistics().dialogs === 0 && callee.statistics().dialogs === 0,
      'neither engine holds a dialog',
    );
  });

  test('lets the callee hang up', async () => {
    const { uac, uas } = await answeredCall();
    const ended = new Promise((resolve) => uac.on('destroy', resolve));

    uas.destroy();
    await ended;

    await eventually(
      () => caller.statistics().dialogs === 0 && callee.statistics().dialogs === 0,
      'neither engine holds a dialog',
    );
  });

  test('lets the caller cancel a ringing call', async () => {
    const cancelled = new Promise((resolve) => {
      onInvite = (req, res) => {
        req.on('cancel', resolve);
        res.send(180);
      };
    });
    let invite: Srf.SrfRequest | undefined;
    const failed = callerSrf
      .createUAC(
        target(),
        { localSdp: sdp(10_000) },
        {
          // srf passes (error, request), although its types say otherwise.
          cbRequest: (...given: unknown[]) => {
            invite = given[1] as Srf.SrfRequest;
          },
          cbProvisional: () => invite?.cancel(() => undefined),
        },
      )
      .catch((error: { status: number }) => error.status);

    expect(await failed).toBe(487);
    await cancelled;
  });

  test('reports a busy callee with its status', async () => {
    onInvite = (_req, res) => res.send(486);

    const failed = callerSrf
      .createUAC(target(), { localSdp: sdp(10_000) })
      .catch((error: { status: number }) => error.status);

    expect(await failed).toBe(486);
  });

  test('lets both sides renegotiate and send INFO within the call', async () => {
    const { uac, uas } = await answeredCall();
    uas.on('modify', (_req, res) => res.send(200, { body: sdp(20_002) }));
    uac.on('modify', (_req, res) => res.send(200, { body: sdp(10_002) }));
    const infos: string[] = [];
    uas.on('info', (req, res) => {
      infos.push(req.body);
      res.send(200);
    });

    expect(await uac.modify(sdp(10_001))).toBe(sdp(20_002));
    expect(await uas.modify(sdp(20_001))).toBe(sdp(10_002));
    const info = {
      method: 'INFO',
      headers: { 'Content-Type': 'application/dtmf-relay' },
      body: 'Signal=1\r\n',
    };
    const answer = (await uac.request(info as unknown as Srf.SrfRequest)) as Srf.SrfResponse;

    expect(answer.status).toBe(200);
    expect(infos).toEqual(['Signal=1\r\n']);
    uac.destroy();
    await eventually(
      () => callee.statistics().dialogs === 0,
      'the engine of the callee holds no dialog',
    );
  });
});
