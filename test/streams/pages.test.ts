// The bots on the pages run as printed.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { readMulawBytes, recordingUrl } from '../../src/embedded/sandbox/wav-file.ts';
import { eventually } from '../support/eventually.ts';
import { freeUdpPort } from '../support/free-port.ts';
import { FakeGateway, type FakeGatewayOptions } from '../support/streams/fake-gateway.ts';
import { ScriptedRealtime } from '../support/streams/scripted-realtime.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const streamSecret = 'strsec_test';

function blockOf(page: string, heading: string): string {
  const [, section = ''] = readFileSync(`${root}/${page}`, 'utf8').split(`\n## ${heading}\n`);
  return /^```js\n(.*?)^```/ms.exec(section)?.[1] ?? '';
}

/** Runs a bot of a page on a free port until the test ends. `printed` returns its output. */
async function runBot(block: string, env: Readonly<Record<string, string>>) {
  const port = await freeUdpPort();
  const node = spawn(process.execPath, ['--input-type=module'], {
    cwd: root,
    env: { PATH: process.env['PATH'], NODE_ENV: 'test', ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const closed = once(node, 'close');
  onTestFinished(async () => {
    node.kill();
    await closed;
  });
  let printed = '';
  node.stdout.on('data', (chunk: Buffer) => (printed += chunk.toString()));
  node.stdin.end(block.replace('4001', String(port)));
  return {
    url: `ws://127.0.0.1:${port}/audio`,
    printed: () => printed,
  };
}

/** Connects as soon as the bot listens. */
async function connect(options: FakeGatewayOptions): Promise<FakeGateway> {
  let gateway: FakeGateway | undefined;
  await eventually(async () => {
    gateway = await FakeGateway.connect(options).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNREFUSED') return undefined;
      throw error;
    });
    return gateway !== undefined;
  }, 'the bot listens');
  return gateway as FakeGateway;
}

test('the README’s bot plays back what it hears, and hangs up at a key', async () => {
  const block = blockOf('README.md', 'Bot audio');
  const { url, printed } = await runBot(block, { STREAM_SECRET: streamSecret });
  const gateway = await connect({ url, streamSecret, speed: 20 });
  const voice = Buffer.from(readMulawBytes(recordingUrl('talker-answer')));
  gateway.speak(voice);
  await eventually(() => gateway.marks.length === 1, 'three seconds were said back');
  gateway.detect({ event: 'amd_machine_detected', reason: 'dense-speech' });
  gateway.press('#');
  await eventually(() => gateway.closeCode !== undefined, 'it hangs up');

  expect(Buffer.concat(gateway.heard).includes(voice)).toBe(true);
  expect(gateway.received.map(({ event }) => event)).toContain('clear');
  expect(gateway.closeCode).toBe(1000);
  expect(gateway.ignored).toEqual([]);
  await eventually(() => printed().includes('amd_machine_detected dense-speech'), 'it says so');
  expect(printed()).toMatch(/^heard: three seconds$/m);
  await expect(FakeGateway.connect({ url, streamSecret: 'another' })).rejects.toThrow('401');
});

test('the agent of the OpenAI Agents SDK on the page about streams talks to a gateway', async () => {
  const greeting = Buffer.from(readMulawBytes(recordingUrl('person-name')));
  await using realtime = await ScriptedRealtime.start([[greeting]]);
  const block = blockOf('src/streams/README.md', 'The OpenAI Agents SDK').replace(
    'apiKey: process.env.OPENAI_API_KEY',
    `apiKey: 'test', url: '${realtime.url}'`,
  );
  const { url } = await runBot(block, {});
  const gateway = await connect({ url, speed: 5 });
  await eventually(() => Buffer.concat(gateway.heard).includes(greeting), 'the greeting is heard');

  expect(realtime.of('conversation.item.create')).toHaveLength(1);
  expect(realtime.of('response.create')).toHaveLength(1);
  // Both directions have the telephone's format.
  const format = { type: 'audio/pcmu' };
  const sessions = realtime.of('session.update').map(({ session }) => session);
  expect(sessions).toContainEqual(
    expect.objectContaining({
      audio: {
        input: expect.objectContaining({ format }),
        output: expect.objectContaining({ format }),
      },
    }),
  );
});
