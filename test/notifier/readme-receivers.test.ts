// The code blocks of the notification page that check a signature. They run unchanged on headers
// that the gateway signs.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { signatureHeaders } from '../../src/notifier/signature.ts';
import { eventually } from '../support/eventually.ts';
import { freeUdpPort } from '../support/free-port.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const [, section = ''] = readFileSync(`${root}/src/notifier/README.md`, 'utf8').split(
  '\n## Check the signature\n',
);
const blockOf = (language: string): string =>
  new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\``, 'ms').exec(section)?.[1] ?? '';

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const body = '{"status":"completed","pence":"£"}';
const headerOf = (text: string): string => {
  const timestampS = Math.floor(Date.now() / 1_000);
  const signed = { eventId: 'evt-1', timestampS, body: text, secrets: ['whsec_bmV3', secret] };
  return signatureHeaders(signed)['gateway-signature'] ?? '';
};

const cases: readonly (readonly [name: string, header: string | null, isRight: boolean])[] = [
  ['a signature of this body', headerOf(body), true],
  ['a signature of another body', headerOf('{}'), false],
  ['no header', null, false],
  ['an empty header', '', false],
  ['a header that is not a signature', 'hello', false],
];

describe('the receiver on the page', () => {
  test('in Python', async () => {
    const checks = cases.map(([, header]) => header);
    const script = `${blockOf('python')}
import json, sys
given = json.load(sys.stdin)
print(json.dumps([verify(given["body"].encode(), header, given["secret"]) for header in given["headers"]]))`;
    const python = spawn('python3', ['-c', script], { stdio: ['pipe', 'pipe', 'inherit'] });
    let output = '';
    python.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    python.stdin.end(JSON.stringify({ body, secret, headers: checks }));
    await once(python, 'close');

    expect(JSON.parse(output)).toEqual(cases.map(([, , isRight]) => isRight));
  });

  test('in Node', async () => {
    const port = await freeUdpPort();
    const node = spawn(process.execPath, ['--input-type=module'], {
      cwd: root,
      env: { PATH: process.env['PATH'], WEBHOOK_SECRET: secret },
      stdio: ['pipe', 'inherit', 'inherit'],
    });
    onTestFinished(async () => {
      node.kill();
      await once(node, 'close');
    });
    node.stdin.end(blockOf('js').replace('4000', String(port)));
    const url = `http://127.0.0.1:${port}/`;
    await eventually(
      () =>
        fetch(url).then(
          () => true,
          () => false,
        ),
      'the receiver listens',
    );

    const statuses = await Promise.all(
      cases.map(async ([, header]) => {
        const headers = header === null ? {} : { 'gateway-signature': header };
        const answer = await fetch(url, { method: 'POST', body, headers });
        return answer.status;
      }),
    );

    expect(statuses).toEqual(cases.map(([, , isRight]) => (isRight ? 200 : 401)));
  });
});
