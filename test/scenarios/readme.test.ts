// Runs the command blocks of the companion's page, and the API page's blocks about apps, exactly as
// written: one after the other, against a gateway as on a laptop.

import { spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { seedPglite } from '../support/databases.ts';
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

/** Defines `npx` so that `npx offhook` runs this build, whether or not it is linked. */
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
    await seedPglite(join(folder, '.offhook'));
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
    // Published items become readable after a moment.
    await eventually(async () => {
      output = await run(`${prepared}\n${script}`);
      return !/"total":0|"status":404/.test(output);
    }, `the commands of "${title}" find the published items`);

    for (const pattern of wanted) expect(output).toMatch(pattern);
  });

  test('apps, bots and limits, as the page on the API describes them', async () => {
    const page = readFileSync(join(root, 'src/api/README.md'), 'utf8');
    const sectionOf = (title: string) => page.split(`\n## ${title}\n`)[1];
    const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    writeFileSync(join(folder, 'crm.pem'), publicKey.export({ type: 'spki', format: 'pem' }));

    const created = await run(blockOf(sectionOf('Apps and bots'), 'sh'));
    const [, appId = ''] = /"appId": ?"([^"]+)"/.exec(created) ?? [];
    const limited = await run(
      blockOf(sectionOf('Limits of an app'), 'sh').replace('<appId>', appId),
    );

    expect(created).toMatch(/dialer[\s\S]*crm[\s\S]*st-5a1c0f/);
    expect(limited).toMatch(/5000/);
  });

  test('every block of commands is tested', () => {
    const titled = areas.filter((text) => blockOf(text, 'sh') !== '');
    expect(titled.map((text) => text.split('\n')[0])).toHaveLength(7);
  });
});
