// The companion's page, run as it is written: against the gateway of a laptop, one block after the other.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { type GatewayProcess, startGateway } from '../support/gateway-process.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const companion = readFileSync(join(root, 'src/companion/README.md'), 'utf8');
const [preparation = '', ...areas] = companion.split('\n## ');

function blockOf(text: string | undefined, language: string): string {
  return new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\``, 'ms').exec(text ?? '')?.[1] ?? '';
}

function area(title: string): string | undefined {
  return areas.find((text) => text.startsWith(`${title}\n`));
}

/** `npx offhook` of this build, whether or not it is linked. */
const npx = `npx() { shift; '${process.execPath}' '${join(root, 'dist/cli.js')}' "$@"; }`;

describe('the companion, as its page describes it', () => {
  const folder = mkdtempSync(join(tmpdir(), 'offhook-readme-'));
  let gateway: GatewayProcess;
  let prepared = '';

  async function run(script: string): Promise<string> {
    const child = spawn('bash', ['-ec', `${npx}\n${script}`], {
      cwd: folder,
      env: { PATH: process.env['PATH'], HOME: folder },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    let complaints = '';
    child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (complaints += chunk.toString()));
    const [code] = await once(child, 'close');
    return code === 0 ? output : output + complaints;
  }

  beforeAll(async () => {
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
    writeFileSync(join(folder, 'visitors.json'), blockOf(area('Data tables'), 'json'));
    writeFileSync(join(folder, 'publish.mjs'), blockOf(area('What producers publish'), 'js'));
    gateway = await startGateway(join(folder, '.offhook'));
    const address = /base=\S+/.exec(preparation)?.[0] ?? '';
    const here = blockOf(preparation, 'sh').replace(address, `base=${gateway.runtime.httpUrl}`);
    prepared = await run(`${here}\ndeclare -p base json auth key`);
  });
  afterAll(async () => {
    await gateway.terminate();
    await rm(folder, { recursive: true, force: true });
  });

  test.each([
    ['Connections', [/"API_KEY":"s\*+9"/, /"total":1/]],
    ['Data tables', [/"name":"Jane Doe","visits":3/]],
    ['Import', [/"msg":"1 skill group was imported\."/]],
    ['What producers publish', [/(stream: 'offhook_ingest', seq: \d, duplicate: false.*){3}/s]],
    ['Conversation history', [/("total":1.*){4}/s, /"traceId":"tc-1"/]],
    ['Conversations', [/"_id":"conversation-1"/, /"conversationType":"voice"/]],
    ['Batch tests', [/"status":"completed"/, /utterance,expected,matched\r?\n/]],
  ])('%s', async (title, wanted) => {
    const script = blockOf(area(title), 'sh');
    expect(script).not.toBe('');
    let output = '';
    // What was published can be read a moment later.
    await eventually(async () => {
      output = await run(`${prepared}\n${script}`);
      return !/"total":0|"status":404/.test(output);
    }, title);

    for (const pattern of wanted) expect(output).toMatch(pattern);
  });

  test('every block of commands is one of these', () => {
    const titled = areas.filter((text) => blockOf(text, 'sh') !== '');
    expect(titled.map((text) => text.split('\n')[0])).toHaveLength(7);
  });
});
