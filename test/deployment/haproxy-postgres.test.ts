// The two forms of sip-config/haproxy-postgres.cfg. test/store/fail-over.test.ts runs the first one
// in front of two servers.

import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { connect, createServer as createTcpServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { freeUdpPort } from '../support/free-port.ts';
import { keepProgram } from '../support/kept-program.ts';
import { textOf } from './compose.ts';

const example = textOf('sip-config/haproxy-postgres.cfg');

/** Does what the comment in the example says, and uncomments its two lines. */
function withPatroni(port: number): string {
  const [before = '', rest = ''] = example.split(/^ {4}# Asks for `transaction_read_only`/m);
  const [, patroni = '', after = ''] =
    /# With Patroni[\s\S]*?to the line below:\n([\s\S]*?)\n\n([\s\S]*)$/.exec(rest) ?? [];
  const lines = patroni.replaceAll(/^ {4}# {3}/gm, '    ');
  return `${before}${lines}\n${after.replace('default-server check', `default-server check port ${port}`)}`;
}

async function writeConfig(text: string): Promise<{ folder: string; path: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'offhook-test-haproxy-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const path = join(folder, 'haproxy.cfg');
  await writeFile(path, text);
  return { folder, path };
}

test.each([
  ['as it is', example],
  ['with Patroni', withPatroni(8_008)],
])('is valid %s', async (_name, text) => {
  const { path } = await writeConfig(text);
  const { stdout, stderr } = await promisify(execFile)('haproxy', ['-c', '-f', path]);

  expect(`${stdout}${stderr}`).toContain('Configuration file is valid');
  expect(`${stdout}${stderr}`).not.toMatch(/WARNING|ALERT/);
});

test('with Patroni, clients reach the server that Patroni names the primary', async () => {
  // Two addresses of loopback stand for two hosts, with the same ports on both.
  const hosts = ['127.0.0.1', '127.0.0.2'];
  let primary = '127.0.0.1';
  const [patroniPort, serverPort, port] = [
    await freeUdpPort(),
    await freeUdpPort(),
    await freeUdpPort(),
  ];
  for (const host of hosts) {
    const patroni: Server = createServer((request, response) => {
      const isAsked = request.method === 'OPTIONS' && request.url === '/primary';
      response.writeHead(isAsked && host === primary ? 200 : 503).end();
    });
    const postgres = createTcpServer((socket) => {
      socket.on('error', () => undefined);
      socket.write(host);
    });
    patroni.listen(patroniPort, host);
    postgres.listen(serverPort, host);
    onTestFinished(() => {
      patroni.close();
      postgres.close();
    });
  }
  const text = withPatroni(patroniPort)
    .replace('bind 127.0.0.1:5432', `bind 127.0.0.1:${port}`)
    .replace('10.0.0.7:5432', `127.0.0.1:${serverPort}`)
    .replace('10.0.0.8:5432', `127.0.0.2:${serverPort}`);
  const { folder, path } = await writeConfig(text);
  const haproxy = await keepProgram({
    program: 'haproxy',
    args: ['-db', '-f', path],
    ...{ logFile: join(folder, 'log'), cwd: folder },
  });
  onTestFinished(() => haproxy.end());

  await eventually(async () => (await reached(port)) === '127.0.0.1', 'the first is reached');
  primary = '127.0.0.2';
  await eventually(async () => (await reached(port)) === '127.0.0.2', 'the second is reached');
});

/** Returns what the server says, or nothing if the connection is refused. */
function reached(port: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk.toString();
      socket.destroy();
    });
    socket.on('error', () => undefined);
    socket.on('close', () => resolve(text));
  });
}
