// The control port: who may connect, what is refused, and which application gets which request.

import { afterEach, describe, expect, test } from 'vitest';
import { startSipEngineThread } from '../../../src/embedded/drachtio/engine-thread.ts';
import { eventually } from '../../support/eventually.ts';
import { forEachTest } from '../../support/opened.ts';
import { startEmbeddedEngine } from '../../support/sip-engine.ts';
import { RawApplication, RawPeer } from './raw-ends.ts';
import { connectSrf } from './srf-support.ts';

describe('the control port', () => {
  const applications: RawApplication[] = [];
  const peers: RawPeer[] = [];

  const connect = async (): Promise<RawApplication> => {
    const application = await RawApplication.connect(engine);
    applications.push(application);
    return application;
  };

  const engine = forEachTest(() => startEmbeddedEngine({ timers: { authenticateMs: 200 } }));

  afterEach(async () => {
    for (const application of applications.splice(0)) application.close();
    for (const peer of peers.splice(0)) await peer.close();
  });

  test.each([
    'ping',
    'route|invite',
    'sip||\r\nOPTIONS sip:a@127.0.0.1 SIP/2.0\r\n\r\n',
    'proxy|a|b',
  ])('refuses %j from an application that has not authenticated', async (request) => {
    const application = await RawApplication.connectOnly(engine);
    applications.push(application);

    const id = application.send(request);

    expect(await application.inbox.take(/response/)).toContain(`|${id}|NO|not authenticated`);
    await eventually(() => application.closed, 'the engine closes the connection');
  });

  test('closes a connection that never authenticates', async () => {
    const application = await RawApplication.connectOnly(engine);
    applications.push(application);

    await eventually(() => application.closed, 'the engine closes the connection');

    expect(engine.statistics().clients).toBe(0);
  });

  test('refuses a wrong secret', async () => {
    const application = await RawApplication.connectOnly(engine);
    applications.push(application);

    const id = application.send('authenticate|cymr|');

    expect(await application.inbox.take(/response/)).toContain(`|${id}|NO|incorrect secret`);
    await eventually(() => application.closed, 'the engine closes the connection');
  });

  test('accepts a frame of 200 KB and refuses a longer one, with its message id', async () => {
    const application = await connect();
    const { answer } = await application.request(
      `||\r\nMESSAGE sip:a@127.0.0.1:9 SIP/2.0\r\nContent-Type: text/plain\r\n\r\n${'x'.repeat(200_000)}`,
    );
    expect(answer).toContain('|OK|application|');

    application.sendRaw('300000#some-id|sip||\r\n');

    expect(await application.inbox.take(/too long/)).toContain('|some-id|NO|message too long');
    await eventually(() => application.closed, 'the engine closes the connection');
  });

  test('refuses a command that it does not support', async () => {
    const application = await connect();

    const id = application.send('proxy|t|||||1s|1s|sip:a@b\r\nINVITE sip:a@b SIP/2.0\r\n\r\n');

    expect(await application.inbox.take(/response/)).toContain(`|${id}|NOK|proxy is not supported`);
  });

  test('passes requests in turn to the applications that asked, however often each has asked', async () => {
    const [first, second] = [await connect(), await connect()];
    const peer = await RawPeer.open(engine);
    peers.push(peer);
    await first.route('options');
    await first.route('options');
    await second.route('options');

    for (let index = 0; index < 4; index += 1) {
      const call = { callId: `o${index}`, cseq: 1, from: '<sip:x@y>;tag=1', to: '<sip:z@y>' };
      peer.request('OPTIONS', call);
    }
    await eventually(
      () => first.inbox.size + second.inbox.size === 4,
      'both applications together get four requests',
    );

    expect([first.inbox.size, second.inbox.size]).toEqual([2, 2]);
  });

  test('removes one route on remove_route and keeps the others', async () => {
    const application = await connect();
    const peer = await RawPeer.open(engine);
    peers.push(peer);
    await application.route('options');
    await application.route('message');
    application.send('remove_route|options');
    await application.inbox.take(/OK/);
    const call = { callId: 'r', cseq: 1, from: '<sip:x@y>;tag=1', to: '<sip:z@y>' };

    peer.request('OPTIONS', call);
    peer.request('MESSAGE', { ...call, callId: 's' });

    expect(await peer.inbox.take(/CSeq: 1 OPTIONS/)).toContain('SIP/2.0 503 ');
    await application.inbox.take(/MESSAGE sip:/);
  });
});

describe('the engine in a thread', () => {
  test('serves drachtio-srf, reports its statistics, and stops cleanly', async () => {
    const engine = await startSipEngineThread({
      sipHost: '127.0.0.1',
      sipPort: 0,
      controlHost: '127.0.0.1',
      controlPort: 0,
      secret: 'cymru',
      logLevel: 'silent',
    });
    let exits = 0;
    engine.onExit(() => {
      exits += 1;
    });

    const srf = await connectSrf(engine);
    expect(await engine.statistics()).toMatchObject({ clients: 1, dialogs: 0 });
    srf.disconnect();
    await engine.close();
    await engine.close();

    expect(exits).toBe(0);
  });

  test('takes TLS settings, keeps the old ones if the new ones are unusable, and may end', async () => {
    const engine = await startSipEngineThread({
      ...{ sipHost: '127.0.0.1', sipPort: 0, controlHost: '127.0.0.1', controlPort: 0 },
      ...{ secret: 'cymru', logLevel: 'silent', tls: { acme: {} } },
    });
    await engine.useTls({ acme: { serverName: 'sip.acme.example' } });
    await expect(engine.useTls({ acme: { key: 'no key' } })).rejects.toThrow();
    expect(await engine.statistics()).toMatchObject({ tlsConnections: 0 });
    await engine.close();
    await engine.useTls({});
  });

  test('reports a port in use as the cause of its error', async () => {
    const taken = await startEmbeddedEngine();
    const options = {
      sipHost: '127.0.0.1',
      sipPort: taken.sipPort,
      controlHost: '127.0.0.1',
      controlPort: 0,
      secret: 'x',
      logLevel: 'silent',
    };

    await expect(startSipEngineThread(options)).rejects.toMatchObject({
      cause: { code: 'EADDRINUSE' },
    });
    await taken.close();
  });
});
