// The keys of encrypted calls (SRTP) are in the SIP messages and nowhere else: calls that go well
// and calls that don't, on a gateway that logs everything and captures calls.

import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { sessionKeys } from '../../src/media/srtp/srtp-keys.ts';
import { run } from '../cli/support.ts';
import { createCa } from '../support/certificates.ts';
import { makeSeededDataDir } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { type GatewayProcess, startGateway } from '../support/gateway-process.ts';
import { forSuite } from '../support/opened.ts';
import type { RawMessage } from '../support/raw-callee.ts';
import { startReceiver } from '../support/receiver.ts';
import { cryptoLine, newKey, SrtpPhone } from '../support/srtp/srtp-phone.ts';
import { startTlsCallee } from '../support/tls-channel.ts';

const dataDir = forSuite(makeSeededDataDir);
const receiver = forSuite(startReceiver);
const frame = Buffer.alloc(160, 0x55);

/** What a key could look like: its own bytes, and those that are derived from it. */
function formsOf(inline: string): readonly Buffer[] {
  const keyAndSalt = Buffer.from(inline, 'base64');
  const key = { suite: 'AES_CM_128_HMAC_SHA1_80', keyAndSalt } as const;
  const derived = (['rtp', 'rtcp'] as const).flatMap((kind) =>
    Object.values(sessionKeys(key, kind)),
  );
  return [keyAndSalt, keyAndSalt.subarray(0, 16), ...derived].flatMap((bytes) => {
    const raw = Buffer.from(bytes);
    const texts = [
      // Without the last character, which differs if more bytes follow.
      raw.toString('base64').replace(/=*$/, '').slice(0, -1),
      raw.toString('base64url').slice(0, -1),
      raw.toString('hex'),
      raw.toString('hex').toUpperCase(),
      // As JSON writes arrays and Buffers, and as it writes Uint8Arrays.
      [...raw].join(','),
      [...raw].map((byte, at) => `"${at}":${byte}`).join(','),
    ];
    return [raw, ...texts.map((text) => Buffer.from(text))];
  });
}

async function filesIn(folder: string): Promise<readonly (readonly [string, Buffer])[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return await Promise.all(
    entries
      .filter((entry) => entry.isFile())
      .map(async ({ parentPath, name }) => {
        const path = join(parentPath, name);
        return [path, await readFile(path)] as const;
      }),
  );
}

async function consoleOf({ runtime: { httpUrl }, dialer }: GatewayProcess) {
  const { url } = (await dialer.request('POST', '/console/link')).body as { readonly url: string };
  const answer = await fetch(`${httpUrl}/console/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: httpUrl },
    body: JSON.stringify({ token: url.split('token=')[1] }),
  });
  const cookie = answer.headers.get('set-cookie')?.split(';')[0] ?? '';
  return (path: string) => fetch(`${httpUrl}/console/api${path}`, { headers: { cookie } });
}

test('no key is in a log, capture, event, notification, database or output of a command', async () => {
  const ca = await createCa(dataDir.path, 'carrier-ca');
  await using carrier = await startTlsCallee(await ca.issue('localhost'));
  const trunksFile = join(dataDir.path, 'trunks.yaml');
  await writeFile(
    trunksFile,
    `trunks:
  - name: secure
    media: srtp-required
    gateways:
      - { host: localhost, port: ${carrier.port}, transport: tls }
    tls: { caFile: carrier-ca.pem }
`,
  );
  const gateway = await startGateway(dataDir.path, {
    TRUNKS_FILE: trunksFile,
    NOTIFY_ALLOWED_NETWORKS: '127.0.0.0/8',
    LOG_LEVEL: 'trace',
  });
  const { callee } = carrier;
  /** The keys of both sides in base64. */
  const keys = new Set<string>();
  const note = (sdp: string) => {
    for (const [, key = ''] of sdp.matchAll(/inline:([A-Za-z0-9+/]{40})/g)) keys.add(key);
    return sdp;
  };
  const answer = (invite: RawMessage, sdp: string) =>
    callee.reply(invite, 200, 'OK', { body: note(sdp) });
  const ring = async () => {
    const { callId } = await gateway.dialer.dial({
      ...{ target: 'tel:+15551230001', notifyurl: receiver.url, machineDetection: 'detect' },
    });
    const invite = await callee.take('INVITE');
    note(invite.body);
    return { callId, invite };
  };
  const callIds: string[] = [];
  const seen: (readonly [string, Buffer | string])[] = [];
  try {
    await using phone = await SrtpPhone.open(newKey());

    // A call with a hold, another key, a key that nobody declared, and offers that we refuse.
    const good = await ring();
    callIds.push(good.callId);
    phone.follow(good.invite.body);
    answer(good.invite, phone.sdp());
    await callee.take('ACK');
    const speak = async () => {
      const before = phone.heard.length;
      await eventually(() => {
        phone.send(frame);
        return phone.heard.length > before + 10;
      }, 'the phone hears the gateway');
    };
    await speak();
    const reoffer = async (body: string, status: number) => {
      callee.request(good.invite, 'INVITE', { body: note(body) });
      note((await callee.takeResponse(status)).body);
      callee.request(good.invite, 'ACK');
    };
    await reoffer(phone.sdp({ direction: 'sendonly' }), 200);
    phone.useKey(newKey());
    await reoffer(phone.sdp(), 200);
    await speak();
    await reoffer(phone.sdp({ crypto: [`${cryptoLine(newKey())} UNENCRYPTED_SRTP`] }), 488);
    await reoffer(phone.sdp({ protocol: 'RTP/AVP', crypto: [] }), 488);
    phone.useKey(newKey());
    for (let packet = 0; packet < 20; packet += 1) phone.send(frame);
    callee.request(good.invite, 'BYE');
    await callee.takeResponse(200);
    expect((await receiver.untilEnded(good.callId)).at(-1)?.['outcome']).toBe('completed');

    // Answers that aren't usable.
    for (const crypto of [
      [cryptoLine(newKey(), 7)],
      [`${cryptoLine(newKey())}|2^20|1:4`],
      [`a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:${newKey().inline}${newKey().inline}`],
    ]) {
      const bad = await ring();
      callIds.push(bad.callId);
      answer(bad.invite, phone.sdp({ crypto }));
      await callee.take('ACK');
      expect((await receiver.untilEnded(bad.callId)).at(-1)?.['outcome']).toBe('carrier-failure');
    }

    // What users can read.
    const ask = await consoleOf(gateway);
    const cli = { DATA_DIR: dataDir.path };
    for (const callId of callIds) {
      for (const file of ['capture', 'export.json', 'sip.pcap']) {
        await eventually(
          async () => (await ask(`/calls/${callId}/${file}`)).status === 200,
          `${file} of an ended call`,
        );
        const response = await ask(`/calls/${callId}/${file}`);
        seen.push([file, Buffer.from(await response.arrayBuffer())]);
      }
      const bot = `/api/public/bot/${gateway.dialer.botId}/calls/${callId}`;
      for (const path of [`/api/public/calls/${callId}`, `${bot}/context`]) {
        seen.push([path, JSON.stringify((await gateway.dialer.request('GET', path)).body)]);
      }
      const { out, err } = await run('cli', ['calls', 'show', callId], cli).finished;
      seen.push(['offhook calls show', out + err]);
    }
    for (const args of [
      ['calls', 'list'],
      ['calls', 'summary'],
      ['notifications', 'list'],
    ]) {
      const { out, err } = await run('cli', args, cli).finished;
      seen.push([`offhook ${args.join(' ')}`, out + err]);
    }
    seen.push(['metrics', await (await fetch(`${gateway.runtime.httpUrl}/metrics`)).text()]);
  } finally {
    await gateway.terminate();
  }
  seen.push(['log', gateway.output()]);
  seen.push(...receiver.received.map(({ rawBody }) => ['notification', rawBody] as const));
  // The database, the event stream of the embedded nats-server, and everything else on the disk.
  seen.push(...(await filesIn(dataDir.path)));

  // Two keys in each offer of ours, and one in each description of the phone with another key.
  expect(keys.size).toBe(4 * 2 + 6);
  const texts = seen.map(([place, data]) => [place, Buffer.from(data)] as const);
  const placesOf = (...forms: readonly (string | Buffer)[]) =>
    texts.filter(([, data]) => forms.some((form) => data.includes(form))).map(([place]) => place);
  // The search reaches the captured messages, the notifications, the database and NATS.
  expect(placesOf('a=crypto:1 AES_CM_128_HMAC_SHA1_80 (not kept)')).toContain('capture');
  expect(placesOf(callIds[0] ?? '').join('\n')).toMatch(
    /notification.*\/pglite\/base\/.*\/streams\/offhook_calls\/msgs\//s,
  );
  expect([...keys].flatMap((key) => placesOf(...formsOf(key)))).toEqual([]);
}, 120_000);
