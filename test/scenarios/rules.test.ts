// Calling rules on a running gateway: the command line, and requests that a rule set refuses.

import { execFile } from 'node:child_process';
import { readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import {
  checkRules,
  listRules,
  removeRules,
  setRules,
  showRules,
} from '../../src/cli/rules/rules-commands.ts';
import { printedBy } from '../cli/support.ts';
import { makeDataDir, startGateway } from '../support/gateway-process.ts';
import { forSuite } from '../support/opened.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = forSuite(makeDataDir);
const gateway = forSuite(
  () => startGateway(folder.path),
  (opened) => opened.terminate(),
);

const env = () => ({ DATA_DIR: folder.path });
const call = { bot: 'bot-1', caller: '+12025550199' };

async function set(name: string, document: unknown): Promise<string> {
  const path = join(folder.path, 'rules.json');
  await writeFile(path, typeof document === 'string' ? document : JSON.stringify(document));
  return (await printedBy(env(), (context) => setRules(context, name, path, {}))).out;
}

const remove = (name: string) => printedBy(env(), (context) => removeRules(context, name, {}));

describe('offhook rules', () => {
  const document = { hours: { windows: [{ days: 'mon-sun', from: '00:00', until: '24:00' }] } };

  test('stores, lists, shows and removes a rule set', async () => {
    expect(await set('evening', document)).toMatch(/^evening {2}version 1 {2}20.*Z {2}app-dev\n?$/);
    expect(await set('evening', { consent: 'required' })).toContain('version 2');

    const list = await printedBy(env(), (context) => listRules(context, { json: true }));
    expect(JSON.parse(list.out)).toMatchObject({ name: 'evening', version: 2 });
    const shown = await printedBy(env(), (context) => showRules(context, 'evening', '1', {}));
    expect(JSON.parse(shown.out)).toEqual(document);

    await remove('evening');
    const { notes } = await printedBy(env(), (context) => listRules(context, {}));
    expect(notes).toContain('No rule sets.');
  });

  test('names what is wrong with a document', async () => {
    await expect(set('evening', { hours: { windows: [] } })).rejects.toThrow('hours.windows');
    await expect(set('evening', 'no JSON')).rejects.toThrow('is not JSON');
    await expect(set('evening', '[]')).rejects.toThrow('must be an object');
  });

  test('checks a number without calling it', async () => {
    await set('night', {
      ...{ hours: { zones: 'callee', windows: [{ days: 'mon', from: '03:00', until: '03:01' }] } },
      ...{ consent: 'required', ringAtLeastMs: 15_000 },
    });
    const check = async (number: string, options: object) =>
      (await printedBy(env(), (context) => checkRules(context, number, { ...call, ...options })))
        .out;

    expect(await check('+1 202 555 0110', {})).toContain(
      'permitted (no rule set; America/New_York)',
    );
    expect(await check('+1 202 555 0110', { rules: 'night' })).toMatch(
      /^not permitted: hours, not before \S+T0[78]:00:00.000Z \(night \d+; America\/New_York\)/,
    );
    await remove('night');
    expect(await gateway.dialer.list()).toMatchObject({ body: { calls: [] } });
  });
});

test('the commands of the page work as written', async () => {
  // The page reads sounds of the repository, and writes into the working folder.
  await symlink(`${root}/src`, `${folder.path}/src`);
  const page = await readFile(`${root}/src/rules/README.md`, 'utf8');
  const blocks = [...page.matchAll(/^```sh\n(.*?)^```/gms)].map(([, block]) => block).join('');
  const npx = `npx() { shift; '${process.execPath}' '${root}/dist/cli.js' "$@"; }`;
  const { stdout } = await promisify(execFile)('bash', ['-ec', `${npx}\n${blocks}`], {
    cwd: folder.path,
    env: { PATH: process.env['PATH'], DATA_DIR: folder.path },
  });

  expect(stdout).toContain(
    [
      '+12025550110  complaint  letter of 3 May  app-dev',
      'accepted 1 (replaced 0), wrong 0',
      '+12025550110  suppressed: complaint',
      '+12025550112  not suppressed',
      '+12025550110  complaint  letter of 3 May  app-dev',
      '+12025550111  do-not-call  state list  app-dev',
      'removed +12025550110\n',
    ].join('\n'),
  );
  expect(stdout).toMatch(/\ndefault {2}version \d+/);
  expect(stdout).toMatch(/\npermitted \(default \d+; America\/New_York\)\n/);
  expect(stdout).toContain('"until": "24:00"');
  expect(stdout).toContain('\nremoved default\n');
  expect(stdout).toMatch(/\nnot permitted: attempts, not before .*\n/);
  expect(stdout).toMatch(/\nnot permitted: rest, not before .*\n/);
});

test('a change applies to the next request', async () => {
  const request = { target: 'tel:+12025550110', caller: '+12025550199' };
  await set('default', { consent: 'required' });
  const refused = await gateway.dialer.post(request);
  expect(refused).toMatchObject({ status: 400, body: { errors: [{ path: 'consent' }] } });

  await set('default', {});
  expect(await gateway.dialer.post(request)).toMatchObject({ status: 200 });
  await remove('default');
});
