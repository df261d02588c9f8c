// Streams with foreign peers: sipp as the phone, TLS with the certificate of a private authority,
// and a gateway that is killed.

import { execFile } from 'node:child_process';
import { createSocket, type Socket } from 'node:dgram';
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
import { freeUdpPort } from '../support/free-port.ts';
import { startGateway } from '../support/gateway-process.ts';
import { startSipp } from '../support/sipp.ts';
import { goOn, hungUp, offer, startInDialog, steer, steered } from '../support/sipp-steps.ts';
import { BotConnection, type ScriptedBot } from '../support/streams/scripted-bot.ts';
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

type Heard = { readonly timestamp: number; readonly audio: Buffer };

/** The phone's audio socket, which the SDP of sipp names. sipp itself receives no audio. */
class Phone {
  readonly heard: Heard[] = [];
  readonly #socket: Socket = createSocket('udp4');

  static async open(payloadType = 0): Promise<Phone> {
    const phone = new Phone();
    phone.#socket.on('message', (packet) => {
      if (((packet[1] ?? 0) & 0x7f) !== payloadType) return;
      phone.heard.push({ timestamp: packet.readUInt32BE(4), audio: packet.subarray(12) });
    });
    phone.#socket.bind(await freeUdpPort(), '127.0.0.1');
    await once(phone.#socket, 'listening');
    return phone;
  }

  get port(): number {
    return this.#socket.address().port;
  }

  get audio(): Buffer {
    return Buffer.concat(this.heard.map(({ audio }) => audio));
  }

  close(): void {
    this.#socket.close();
  }
}

describe('sipp as the phone', () => {
  test.each([
    ['PCMU', 0],
    ['PCMA', 8],
  ])('hears the bot in %s', async (codec, type) => {
    const bot = await rig.startBot();
    const phone = await Phone.open(type);
    await using sipp = await startSipp({
      scenario: 'answer-codec',
      keys: {
        audio_type: String(type),
        audio_codec: codec,
        audio_port: String(phone.port),
      },
    });
    const connection = await talkTo(sipp.uri('callee'), bot);
    const said = speech(2_000);
    connection.say(said);
    const wanted =
      codec === 'PCMA' ? Buffer.from(said.map((byte) => mulawToAlaw[byte] ?? 0)) : said;
    await eventually(() => phone.audio.includes(wanted), 'the phone hears the bot');

    connection.socket.close(1000);
    expect((await sipp.exited).code).toBe(0);
    phone.close();
  });

  test('hears the rest of a sentence at the port to which a re-INVITE moves its audio', async () => {
    const bot = await rig.startBot();
    const [before, after] = [await Phone.open(), await Phone.open()];
    await using sipp = await startInDialog(
      [steered, offer({ port: after.port }), hungUp],
      before.port,
    );
    const connection = await talkTo(sipp.uri('callee'), bot);
    const said = speech(16_000);
    connection.say(said);
    connection.mark('said');
    await eventually(
      () => before.audio.includes(said.subarray(0, 800)),
      'the phone hears the start of the sentence',
    );
    await steer(sipp);
    await eventually(() => connection.marks.includes('said'), 'the sentence is played');
    await eventually(
      () => Buffer.concat([before.audio, after.audio]).includes(said),
      'the phone has heard the whole sentence',
    );
    expect(after.heard.length).toBeGreaterThan(10);

    connection.socket.close(1000);
    expect((await sipp.exited).code).toBe(0);
    for (const phone of [before, after]) phone.close();
  });

  test('misses what is said while it holds, and hears the rest on time', async () => {
    const lateBefore = await rig.lateTicks();
    const bot = await rig.startBot();
    const phone = await Phone.open();
    const hold = offer({ port: phone.port, direction: 'sendonly' });
    const resume = offer({ port: phone.port });
    await using sipp = await startInDialog([steered, hold, steered, resume, hungUp], phone.port);
    const connection = await talkTo(sipp.uri('callee'), bot);
    const said = speech(16_000);
    connection.say(said);
    connection.mark('said');
    await eventually(
      () => phone.audio.includes(said.subarray(0, 1_760)),
      'the phone hears the start of the sentence',
    );
    await steer(sipp);
    const { length } = connection.of('media');
    await eventually(
      () => connection.of('media').length > length + 25,
      'the bot talks during the hold',
    );
    await steer(sipp);
    await eventually(() => connection.marks.includes('said'), 'the sentence has ended');
    connection.say(speech(800, 3));
    await eventually(
      () => phone.audio.includes(speech(800, 3)),
      'the phone hears audio after the hold',
    );

    // Each packet contains the part of the sentence that belongs to its timestamp. The part said
    // during the hold is missing, and nothing is late.
    const first = phone.heard.findIndex(({ audio }) => audio.equals(said.subarray(0, 160)));
    const { timestamp = 0 } = phone.heard[first] ?? {};
    const sentence = phone.heard.filter((one) => (one.timestamp - timestamp) >>> 0 < said.length);
    // While the gateway stands still, the audio waits but the timestamps advance.
    const late = (await rig.lateTicks()) - lateBefore;
    let waited = 0;
    const isAt = (audio: Buffer, at: number) => audio.equals(said.subarray(at, at + 160));
    for (const one of sentence) {
      const at = (one.timestamp - timestamp) >>> 0;
      while (!isAt(one.audio, at - waited * 160) && waited < late) waited += 1;
      expect(isAt(one.audio, at - waited * 160), `at ${at}`).toBe(true);
    }
    expect(sentence.length).toBeLessThan(said.length / 160 - 10);
    expect(sentence.length).toBeGreaterThan(10);
    connection.socket.close(1000);
    expect((await sipp.exited).code).toBe(0);
    phone.close();
  });

  test('hears the bot from the answer on and not before, even if it plays early media', async () => {
    const phone = await Phone.open();
    const greeting = speech(800);
    const bot = await rig.startBot({
      onConnection: (connection) => {
        connection.onMessage = ({ event }) => {
          if (event === 'start') connection.say(greeting);
        };
      },
    });
    await using sipp = await startSipp({
      scenario: 'early-media-answer',
      keys: {
        ...{ media_ip: '127.0.0.1', media_port: String(phone.port) },
        until_answer: steered(0),
      },
    });
    const calling = talkTo(sipp.uri('callee'), bot);
    calling.catch(() => undefined);
    await eventually(() => bot.tcpConnections === 1, 'the bot is connected in advance');
    expect([bot.connections, phone.heard]).toEqual([[], []]);
    await goOn(sipp);
    const connection = await calling;
    await eventually(() => phone.audio.includes(greeting), 'the greeting is heard');

    connection.socket.close(1000);
    expect((await sipp.exited).code).toBe(0);
    phone.close();
  });
});

async function talkTo(target: string, bot: ScriptedBot): Promise<BotConnection> {
  await rig.laptop.dial(target, { stream: { url: bot.url }, machineDetection: 'disabled' });
  return await bot.connection();
}

test('a bot behind TLS is reached by its name, and its certificate is checked', async () => {
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
  await eventually(
    () => connections[0]?.of('media').length !== undefined,
    'the bot receives audio over TLS',
  );

  // The certificate does not name the IP address.
  const wrong = await rig.call({ url: `wss://127.0.0.1:${port}/audio` });
  await wrong.callee.answer();
  await wrong.callee.isHungUp();
  expect(await rig.endOf(wrong.callId)).toMatchObject({ outcome: 'bot-failure' });
  for (const { socket } of connections) socket.terminate();
  server.closeAllConnections();
  server.close();
});

// This must be the last test: it kills the gateway of this file.
test('a gateway that is killed leaves neither bot nor phone in the call', async () => {
  const bot = await rig.startBot();
  const { callee } = await rig.call({ url: bot.url });
  await callee.answer();
  const connection = await bot.connection();
  const { dataDir } = rig.laptop.gateway;
  await rig.laptop.gateway.kill();
  await eventually(() => connection.closeCode !== undefined, 'the stream is closed');
  expect(connection.closeCode).toBe(1006);

  const next = await startGateway(dataDir);
  await callee.isHungUp();
  expect(bot.connections).toHaveLength(1);
  await next.terminate();
});
