// The whole gateway records a call: its file in a bucket, its event after the end, the POST, the
// API, and what the store's absence changes. A spool that fails during a call is counted.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { type Laptop, startLaptop } from '../support/laptop.ts';
import { startTestS3 } from '../support/s3-server.ts';

const person = 'tel:+12025550100';

test('a recording is stored once the store is back, announced once, read, linked and deleted', async () => {
  const s3 = await startTestS3();
  const folder = await mkdtemp(join(tmpdir(), 'offhook-spool-'));
  const spool = join(folder, 'spool');
  const { endpoint = '', accessKeyId, secretAccessKey } = s3.target;
  const laptop = await startLaptop({
    ...{ RECORDING_STORE: 's3://recordings/calls', S3_ENDPOINT: endpoint },
    RECORDING_SPOOL: spool,
    ...{ AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey },
  });
  await s3.pause();
  const { callId } = await laptop.dial(person, {
    ...{ machineDetection: 'disabled', maxDurationMs: 1_500 },
    recording: { notifyurl: `${laptop.receiver.url}/recording` },
  });
  const ended = await laptop.receiver.untilEnded(callId);
  expect(ended.at(-1)).toMatchObject({ recording: { state: 'storing' } });
  const { dialer } = laptop.gateway;
  const address = `${dialer.httpUrl}/api/public/bot/${dialer.botId}/calls/${callId}/recording`;
  const ask = (query = '', method = 'GET') =>
    fetch(`${address}${query}`, { method, headers: { auth: dialer.token } });
  expect((await ask()).status).toBe(409);
  await untilWaiting(laptop);

  await s3.resume();
  const stored = () =>
    laptop.events.filter((event) => event.type === 'recording-stored' && event.callId === callId);
  await eventually(() => stored().length > 0, 'the recording is stored', 60_000);
  expect(stored()).toHaveLength(1);
  await eventually(
    () => laptop.receiver.received.some(({ rawBody }) => rawBody.includes('recording-stored')),
    'the POST about the recording',
  );

  const file = Buffer.from(await (await ask()).arrayBuffer());
  expect(file.subarray(0, 4).toString()).toBe('RIFF');
  expect(file.length).toBe(Number(stored()[0]?.data['bytes']));
  const { url } = (await (await ask('?link=1m')).json()) as { readonly url: string };
  expect(Buffer.from(await (await fetch(url)).arrayBuffer())).toEqual(file);
  expect((await ask('', 'DELETE')).status).toBe(200);
  expect((await fetch(url)).status).toBe(404);

  await rm(spool, { recursive: true });
  await writeFile(spool, 'a file in place of the folder');
  const unrecorded = await laptop.dial(person, {
    ...{ machineDetection: 'disabled', maxDurationMs: 1_000, recording: true },
  });
  const last = (await laptop.receiver.untilEnded(unrecorded.callId)).at(-1);
  expect(last).toMatchObject({ recording: { state: 'failed', reason: 'spool-unusable' } });
  const metrics = await (await fetch(`${laptop.gateway.runtime.httpUrl}/metrics`)).text();
  expect(metrics).toContain('offhook_recordings_failed_total{reason="spool-unusable"} 1');
  await laptop.close();
  await s3.stop();
  await rm(folder, { recursive: true });
});

async function untilWaiting(laptop: Laptop): Promise<void> {
  const { httpUrl } = laptop.gateway.runtime;
  await eventually(
    async () => {
      const ready = (await (await fetch(`${httpUrl}/ready`)).json()) as {
        readonly ready?: boolean;
        readonly servers: readonly { readonly name: string; readonly state: string }[];
      };
      return ready.servers.some(
        ({ name, state }) => name === 'Store of recordings' && state === 'away',
      );
    },
    'the store is reported as away',
    20_000,
  );
}
