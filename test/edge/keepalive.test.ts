// Keeping NAT bindings open, and the address that a carrier sees.

import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { answer, openTrunkWorld } from '../sip/trunk-world.ts';
import { eventually } from '../support/eventually.ts';
import { one, RawCallee } from '../support/raw-callee.ts';
import { onlyEmbedded } from './engines.ts';

/** A carrier over TCP that only keeps what it receives, and answers pings if it's told to. */
async function tcpCarrier({ answersPings }: { readonly answersPings: boolean }) {
  const state = { received: '', pings: 0, closed: 0, from: '' };
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    state.from = socket.remoteAddress ?? '';
    socket.on('error', () => undefined);
    socket.on('close', () => {
      state.closed += 1;
    });
    socket.on('data', (data) => {
      const text = data.toString('latin1');
      state.received += text;
      if (!text.endsWith('\r\n\r\n\r\n\r\n') && text !== '\r\n\r\n') return;
      state.pings += 1;
      if (answersPings) socket.write('\r\n');
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    state,
    gateway: {
      ...{ host: '127.0.0.1', port: (server.address() as AddressInfo).port },
      ...{ transport: 'tcp' as const, priority: 1, weight: 1 },
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

describe('keepalive: crlf', () => {
  const timers = { keepAliveMs: 30, pongMs: 60 };

  onlyEmbedded('sends double CRLFs, as drachtio-server never does', async () => {
    await using carrier = await tcpCarrier({ answersPings: true });
    const trunk = { gateways: [carrier.gateway], keepalive: 'crlf' } as const;
    await using world = await openTrunkWorld({ gateways: 0, trunk, timers });

    world.place();

    await eventually(() => carrier.state.pings >= 5, 'five pings arrive');
    expect(carrier.state.received).toMatch(/^INVITE [^\r]+ SIP\/2\.0\r\n/);
    expect(carrier.state.received).not.toContain('keepalive');
    expect(carrier.state.closed).toBe(0);
  });

  onlyEmbedded('a connection without a pong is dead, so its requests fail at once', async () => {
    await using carrier = await tcpCarrier({ answersPings: false });
    const trunk = { gateways: [carrier.gateway], keepalive: 'crlf' } as const;
    await using world = await openTrunkWorld({ gateways: 0, trunk, timers });

    const { failure } = await world.place().observer.until('failed');

    expect(failure).toMatchObject({ kind: 'stack', sipStatus: 503 });
    await eventually(() => carrier.state.closed === 1, 'the connection is closed');
  });
});

test('keepalive: options sends OPTIONS to each gateway, and a gateway that ignores them stays up', async () => {
  await using world = await openTrunkWorld({
    trunk: { keepalive: 'options' },
    limits: { keepAliveMs: 40 },
  });

  for (const gateway of world.gateways) {
    for (let times = 0; times < 2; times += 1) {
      const request = await gateway.take('OPTIONS');
      gateway.reply(request, 404, 'Not Found');
    }
  }
  expect(world.sip.gateways().every(({ isUp }) => isUp)).toBe(true);
});

describe('localAddress', () => {
  const localAddress = '127.0.0.2';

  onlyEmbedded(
    'is where requests come from, what Via and Contact say, and where BYEs arrive',
    async () => {
      await using world = await openTrunkWorld({ gateways: 1, trunk: { localAddress } });
      const [carrier] = world.gateways;
      const port = world.engines[0]?.sipPort;
      if (carrier === undefined) throw new Error('a callee');

      const { leg, observer } = world.place();
      const invite = await carrier.take('INVITE');
      carrier.reply(invite, 200, 'OK', { body: answer });
      await observer.until('answered');
      leg.acknowledge();
      const ack = await carrier.take('ACK');

      for (const { from } of [invite, ack])
        expect(from).toMatchObject({ address: localAddress, port });
      expect(one(invite, 'via')).toContain(`${localAddress}:${port}`);
      expect(one(invite, 'contact')).toBe(`<sip:${localAddress}:${port}>`);
      carrier.request(invite, 'BYE');
      const answered = await carrier.takeResponse(200);
      expect(answered.from).toMatchObject({ address: localAddress, port });
      await leg.released;
    },
  );

  onlyEmbedded('also takes requests from another port of the carrier', async () => {
    await using world = await openTrunkWorld({ gateways: 1, trunk: { localAddress } });
    await using other = await RawCallee.start();
    const [carrier] = world.gateways;
    if (carrier === undefined) throw new Error('a callee');

    const { leg, observer } = world.place();
    const invite = await carrier.take('INVITE');
    carrier.reply(invite, 200, 'OK', { body: answer });
    await observer.until('answered');
    leg.acknowledge();
    await carrier.take('ACK');
    other.request(invite, 'BYE');

    expect((await other.takeResponse(200)).from.address).toBe(localAddress);
    await leg.released;
  });

  onlyEmbedded('is the source of TCP connections too', async () => {
    await using carrier = await tcpCarrier({ answersPings: true });
    const trunk = { gateways: [carrier.gateway], localAddress };
    await using world = await openTrunkWorld({ gateways: 0, trunk });

    world.place();

    await eventually(() => carrier.state.received !== '', 'the INVITE arrives');
    expect(carrier.state.from).toBe(localAddress);
    expect(carrier.state.received).toMatch(/Contact: <sip:127\.0\.0\.2:\d+;transport=tcp>/);
  });
});

test('publicSipHost is the Contact of calls and registrations', async () => {
  await using world = await openTrunkWorld({
    gateways: 1,
    trunk: {
      publicSipHost: { host: 'sip.public.test', port: 5_070 },
      auth: { username: 'alice', password: 'secret' },
      register: { expiresS: 3_600 },
    },
  });
  const [carrier] = world.gateways;
  if (carrier === undefined) throw new Error('a callee');
  const register = await carrier.take('REGISTER');
  carrier.reply(register, 200, 'OK', { contact: false });
  expect(one(register, 'contact')).toBe('<sip:alice@sip.public.test:5070>');

  const { leg, observer } = world.place();
  const invite = await carrier.take('INVITE');
  carrier.reply(invite, 200, 'OK', { body: answer });
  await observer.until('answered');
  leg.acknowledge();
  await carrier.take('ACK');
  leg.hangUp('done');
  carrier.reply(await carrier.take('BYE'), 200, 'OK');
  await leg.released;

  expect(one(invite, 'contact')).toBe('<sip:sip.public.test:5070>');
});
