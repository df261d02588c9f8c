// A typed client, generated from the OpenAPI document. It compiles, the compiler finds mistakes in
// a request, and the client dials a call on a gateway and follows it to its end.

import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { run } from '../cli/support.ts';
import { startLaptop } from '../support/laptop.ts';
import { forSuite } from '../support/opened.ts';

const execute = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));
const bin = (path: string): string => join(root, 'node_modules', path);

const head = `
import createClient from 'openapi-fetch';
import type { paths } from './api.d.ts';
const { GATEWAY_URL = '', GATEWAY_TOKEN = '' } = process.env;
const client = createClient<paths>({ baseUrl: GATEWAY_URL, headers: { auth: GATEWAY_TOKEN } });
const path = { botId: 'bot-1' };
const dialout = '/api/1.1/public/bot/{botId}/V2/contactcenter/dialout';
const call = '/api/public/bot/{botId}/calls/{callId}';
`;

const program = `${head}
const { data: accepted, error } = await client.POST(dialout, {
  params: { path },
  body: { botId: 'bot-1', target: 'tel:+12025550130', caller: '15559876543' },
});
if (accepted === undefined) throw new Error(error.detail);
if (!('callId' in accepted)) throw new Error('the answer to a request with check=true');
const one = { params: { path: { ...path, callId: accepted.callId } } };
for (;;) {
  const { data: details } = await client.GET(call, one);
  const events: readonly string[] = details?.timeline.map(({ type }) => type) ?? [];
  if (details?.state !== 'ended') continue;
  const { error: problem } = await client.GET(call, { params: { path: { ...path, callId: 'call-none' } } });
  console.log(JSON.stringify({ outcome: details.outcome, events, problem: problem?.status }));
  break;
}`;

/** Each line has one mistake. */
const mistakes = `${head}
await client.POST(dialout, { params: { path }, body: { botId: 'bot-1', target: 5, caller: '15559876543' } });
await client.POST(dialout, { params: { path }, body: { botId: 'bot-1', caller: '15559876543' } });
await client.GET(call, { params: { path } });
await client.GET('/api/public/nowhere');
(await client.GET(call, { params: { path: { ...path, callId: 'call-1' } } })).data?.notAMember;
`;

let folder: string;
/**
 * The compiler's messages about both files. It runs once, because reading the imports takes most of
 * its time.
 */
let complaints: string;
const laptop = forSuite(startLaptop);
beforeAll(async () => {
  // The folder is below node_modules, where its imports are found and no other test looks.
  folder = await mkdtemp(bin('.offhook-client-'));
  await execute(
    process.execPath,
    [
      ...['--import', fileURLToPath(new URL('./typescript-5.mjs', import.meta.url))],
      bin('openapi-typescript/bin/cli.js'),
      `${laptop.gateway.runtime.httpUrl}/openapi.json`,
      // A request may omit members that have a default.
      '--default-non-nullable=false',
      ...['-o', join(folder, 'api.d.ts')],
    ],
    { cwd: root },
  );
  complaints = await compile({ client: program, mistakes });
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function compile(programs: Readonly<Record<string, string>>): Promise<string> {
  const files = Object.keys(programs).map((name) => `${name}.mts`);
  for (const [name, text] of Object.entries(programs))
    await writeFile(join(folder, `${name}.mts`), text);
  const options = ['--strict', '--target', 'es2023', '--module', 'nodenext', '--types', 'node'];
  const compiled = execute(
    process.execPath,
    [
      bin('typescript/bin/tsc'),
      '--ignoreConfig',
      ...options,
      '--skipLibCheck',
      '--pretty',
      'false',
      ...files,
    ],
    { cwd: folder },
  );
  return await compiled.then(
    ({ stdout }) => stdout,
    (error: { stdout: string }) => error.stdout,
  );
}

test('dials, and follows the call', async () => {
  const { out: token } = await run('cli', ['token'], { DATA_DIR: laptop.gateway.dataDir }).finished;

  expect(complaints).not.toMatch(/^(?!mistakes\.mts)\S/m);
  const { stdout } = await execute(process.execPath, [join(folder, 'client.mjs')], {
    env: { GATEWAY_URL: laptop.gateway.runtime.httpUrl, GATEWAY_TOKEN: token.trim() },
  });

  expect(JSON.parse(stdout)).toEqual({
    outcome: 'busy',
    events: ['queued', 'dialing', 'failed'],
    problem: 404,
  });
});

test('the compiler finds each mistake', async () => {
  const lines = [...complaints.matchAll(/^mistakes\.mts\((\d+),/gm)].map(([, line]) =>
    Number(line),
  );
  const first = head.split('\n').length;

  expect([...new Set(lines)]).toEqual([0, 1, 2, 3, 4].map((offset) => first + offset + 1));
});
