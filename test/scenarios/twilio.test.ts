// Twilio's own library reads a call and hangs it up. As the page "Coming from Twilio" shows, only
// its httpClient differs.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import twilio from 'twilio';
import type { RequestOptions } from 'twilio/lib/base/RequestClient.js';
import { afterEach, expect, test } from 'vitest';
import { readDevApp } from '../support/dialer-client.ts';
import { eventually } from '../support/eventually.ts';
import { forSuite } from '../support/opened.ts';
import { startStreamRig } from '../support/streams/stream-rig.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const page = readFileSync(`${root}/src/api/twilio/README.md`, 'utf8');

const rig = forSuite(startStreamRig);
afterEach(() => rig.reset());

/** Places a call whose bot uses Twilio's protocol. Returns what Twilio's library needs. */
async function answeredCall() {
  const bot = await rig.startBot();
  const { callee, callId } = await rig.call({ url: bot.url });
  await callee.answer();
  const { start } = (await bot.connection()).of('start')[0] ?? {};
  if (start === undefined) throw new Error('no start');
  const { dataDir, runtime } = rig.laptop.gateway;
  const { streamSecret = '' } = await readDevApp(dataDir);
  return { ...start, callee, callId, streamSecret, baseUrl: runtime.httpUrl };
}

class OffhookClient extends twilio.RequestClient {
  readonly #baseUrl: string;

  constructor(baseUrl: string) {
    super();
    this.#baseUrl = baseUrl;
  }

  override request<Data>(options: RequestOptions<Data>) {
    const uri = options.uri.replace('https://api.twilio.com', this.#baseUrl);
    return super.request({ ...options, uri });
  }
}

test('the example on the page reads a call and hangs it up', async () => {
  const call = await answeredCall();
  const [, section = ''] = page.split("\n## With Twilio's libraries\n");
  const [, block = ''] = /^```js\n(.*?)^```/ms.exec(section) ?? [];
  const node = spawn(process.execPath, ['--input-type=module'], {
    cwd: root,
    env: {
      PATH: process.env['PATH'],
      OFFHOOK_URL: call.baseUrl,
      ACCOUNT_SID: call.accountSid,
      STREAM_SECRET: call.streamSecret,
      CALL_SID: call.callSid,
    },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let printed = '';
  node.stdout.on('data', (chunk: Buffer) => (printed += chunk.toString()));
  node.stdin.end(block);
  const [code] = await once(node, 'close');

  expect([code, printed]).toEqual([0, expect.stringMatching(/^in-progress sip:callee@\S+ null\n/)]);
  expect(printed).toMatch(/\ncompleted\n$/);
  await call.callee.isHungUp();
  expect(await rig.endOf(call.callId)).toMatchObject({ reasonCode: 'Bot-disconnected' });
});

test('Twilio’s library reads a call that has ended, and understands our errors', async () => {
  const { accountSid, callSid, streamSecret, baseUrl, callee, callId } = await answeredCall();
  const httpClient = new OffhookClient(baseUrl);
  const client = twilio(accountSid, streamSecret, { httpClient });
  callee.hangUp();
  await rig.endOf(callId);
  await eventually(
    async () => (await client.calls(callSid).fetch()).status === 'completed',
    'the call is stored as ended',
  );
  const call = await client.calls(callSid).fetch();

  expect(call).toMatchObject({ sid: callSid, accountSid, direction: 'outbound-api' });
  expect(call.startTime.getTime()).toBeLessThanOrEqual(call.endTime.getTime());
  expect(call.duration).toMatch(/^\d+$/);
  await expect(client.calls(callSid).update({ status: 'completed' })).rejects.toMatchObject({
    ...{ status: 404, code: 20_404 },
  });
  await expect(client.calls(callSid).update({ twiml: '<Response/>' })).rejects.toMatchObject({
    ...{ status: 400, code: 20_001, message: 'Only Status is supported here, not Twiml' },
  });
  const stranger = twilio(accountSid, 'guessed', { httpClient });
  await expect(stranger.calls(callSid).fetch()).rejects.toMatchObject({
    ...{ status: 401, code: 20_003 },
  });
});

test('a call without a stream is found by the digits of its id', async () => {
  const { accountSid, streamSecret, baseUrl } = await answeredCall();
  const { callee, callId } = await rig.call(null);
  const client = twilio(accountSid, streamSecret, { httpClient: new OffhookClient(baseUrl) });
  const callSid = `CA${callId.replace('call-', '').replaceAll('-', '')}`;
  callee.ring();
  await eventually(
    async () => (await client.calls(callSid).fetch()).status === 'ringing',
    'the call is stored as ringing',
  );

  expect(await client.calls(callSid).update({ status: 'completed' })).toMatchObject({
    status: 'canceled',
  });
  await callee.isCancelled();
  expect(await rig.endOf(callId)).toMatchObject({ outcome: 'cancelled' });
});
