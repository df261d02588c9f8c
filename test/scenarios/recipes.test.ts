// The commands of the page of recipes, run as they are written on the gateway of a laptop.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type GatewayProcess, makeDataDir, startGateway } from '../support/gateway-process.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const page = readFileSync(`${root}/src/api/recipes.md`, 'utf8');
/** `npx offhook` of this build, whether or not it is linked. */
const npx = `npx() { shift; '${process.execPath}' '${root}/dist/cli.js' "$@"; }`;

let gateway: GatewayProcess;
let folder: Awaited<ReturnType<typeof makeDataDir>>;

beforeAll(async () => {
  folder = await makeDataDir();
  gateway = await startGateway(folder.path);
});
afterAll(async () => {
  await gateway.terminate();
  await folder.remove();
});

async function run(title: string): Promise<string> {
  const section = page.split('\n## ').find((text) => text.startsWith(`${title}\n`)) ?? '';
  const [, block = ''] = /^```sh\n(.*?)^```/ms.exec(section) ?? [];
  const script = block.replace('http://127.0.0.1:3000', gateway.runtime.httpUrl);
  const child = spawn('bash', ['-ec', `${npx}\n${script}`], {
    cwd: root,
    env: { PATH: process.env['PATH'], DATA_DIR: folder.path },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  }
  const [code] = await once(child, 'close');
  expect([code, output]).toEqual([0, output]);
  return output;
}

describe('a recipe', () => {
  test('leaves a message', async () => {
    const output = await run('Leave a message');

    expect(output).toContain('playback-started');
    expect(output).toMatch(/playback-finished.*done/);
    expect(output).toMatch(/completed.*Bot-disconnected/);
  });

  test('plays something in mid-call', async () => {
    const output = await run('Play something in mid-call');

    expect(output).toMatch(/"name":"please-hold"/);
    expect(output).toMatch(/playing sound:please-hold \(cmd-/);
    expect(output).toMatch(/"ok":true,"commandId":"silence-1","state":"answered"/);
  });
});
