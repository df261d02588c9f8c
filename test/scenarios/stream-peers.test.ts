// Streams with peers that are none of ours: sipp as the phone, TLS with a certificate of a private authority, and a gateway that
// is killed.

import { execFile } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { WebSocketServer } from 'ws';
import { mulawToAlaw } from '../../src/media/g711.ts';
import { eventually } from '../support/eventually.ts';
import { startGateway } from '../support/gateway-process.ts';
import { startSipp } from '../support/sipp.ts';
import { BotConnection } from '../support/streams/scripted-bot.ts';
import { type StreamRig, speech, startStreamRig } from '../support/streams/stream-rig.ts';

let folder: string;
let certificate: string;
let rig: StreamRig;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'offhook-tls-'));
  certificate = join(folder, 'certificate.pem');
  await promisify(execFile)('openssl', [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'],
    ...['-keyout', join(folder, 'key.pem'), '-out', certificate, '-days', '2'],
    ...['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'],
  ]);
  rig = await startStreamRig({ NODE_EXTRA_CA_CERTS: certificate });
});
afterEach(() => rig.reset());
afterAll(async () => {
  await rig.close();
  await rm(folder, { recursive: true, force: true });
});

describe('sipp as the phone', () => {
  test.each([
    ['PCMU', 0],
    ['PCMA', 8],
  ])('hears the bot in %s', async (codec, type) => {
    const bot = await rig.startBot();
    const phone = createSocket('udp4');
    phone.bind(0, '127.0.0.1');
    await once(phone, 'listening');
    const heard: Buffer[] = [];
    phone.on('message', (packet) => {
      if (((packet[1] ?? 0) & 0x7f) === type) heard.push(packet.subarray(12));
    });
    await using sipp = await startSipp({
      scenario: 'answer-codec',
      keys: {
        audio_type: String(type),
        audio_codec: codec,
        audio_port: String(phone.address().port),
      },
    });
    const stream = { url: bot.url };
    await rig.laptop.dial(sipp.uri('callee'), { stream, machineDetection: 'disabled' });
    const connection = await bot.connection();
    const said = speech(2_000);
    connection.say(said);
    const wanted =
      codec === 'PCMA' ? Buffer.from(said.map((byte) => mulawToAlaw[byte] ?? 0)) : said;
    await eventually(() => Buffer.concat(heard).includes(wanted), 'it is heard');

    connection.socket.close(1000);
    expect((await sipp.exited).code).toBe(0);
    phone.close();
  });
});

test('a bot behind TLS is reached by its name, and its certificate is looked at', async () => {
  const server = createServer({
    key: await readFile(join(folder, 'key.pem')),
    cert: await readFile(certificate),
  });
  const connections: BotConnection[] = [];
  new WebSocketServer({ server }).on('connection', (socket, request) =>
    connections.push(new BotConnection(socket, request)),
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const { callee } = await rig.call({ url: `wss://localhost:${port}/audio` });
  callee.ring();
  await callee.answer();
  await eventually(() => connections[0]?.of('media').length !== undefined, 'it is connected');

  // The address is no name of the certificate.
  const wrong = await rig.call({ url: `wss://127.0.0.1:${port}/audio` });
  await wrong.callee.answer();
  await wrong.callee.isHungUp();
  expect(await rig.endOf(wrong.callId)).toMatchObject({ outcome: 'bot-failure' });
  for (const { socket } of connections) socket.terminate();
  server.closeAllConnections();
  server.close();
});

test('a gateway that is killed leaves neither bot nor phone in the call', async () => {
  const own = await startStreamRig();
  const bot = await own.startBot();
  const { callee } = await own.call({ url: bot.url });
  await callee.answer();
  const connection = await bot.connection();
  const { dataDir } = own.laptop.gateway;
  await own.laptop.gateway.kill();
  await eventually(() => connection.closeCode !== undefined, 'the stream is closed');
  expect(connection.closeCode).toBe(1006);

  const next = await startGateway(dataDir);
  await callee.isHungUp();
  expect(bot.connections).toHaveLength(1);
  await next.terminate();
  await own.reset();
  await own.close();
});
