// Runs a real baresip as a phone that accepts each call at once, and sends back what it hears or
// plays a file. It is controlled by its menu's commands, over TCP.

import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Certificate } from './certificates.ts';
import { eventually } from './eventually.ts';
import { freePortPair, freeUdpPort } from './free-port.ts';
import { keepLog } from './gateway-logs.ts';
import { keepProgram } from './kept-program.ts';
import { makeWav } from './wav.ts';

export type BaresipOptions = {
  /** The number that baresip has. */
  readonly user: string;
  readonly certificate: Certificate;
  /** `srtp-mand`: refuses calls without encryption. */
  readonly encryption: 'srtp-mand' | 'srtp' | 'none';
  /**
   * Samples at 8,000 Hz that baresip plays once in each call. Default: it sends back what it hears,
   * until a call is held for the first time. Its bridge of player and source doesn't survive that.
   */
  readonly says?: Int16Array;
};

export type Baresip = AsyncDisposable & {
  /** Port for TLS. */
  readonly port: number;
  readonly log: () => Promise<string>;
  /**
   * Runs a command of the menu, e.g. `hold`.
   * @throws Error if baresip doesn't know the command, or has no call for it
   */
  readonly command: (name: string, parameters?: string) => Promise<void>;
  /** Waits until something that baresip has reported matches, e.g. `CALL_DTMF_START`. */
  readonly reports: (expected: RegExp) => Promise<void>;
};

const startsWithinMs = 20_000;
const modules = ['g711', 'srtp', 'aubridge', 'aufile', 'account'];

export async function startBaresip(options: BaresipOptions): Promise<Baresip> {
  const folder = await mkdtemp(join(tmpdir(), 'offhook-baresip-'));
  // baresip listens for TLS on the port after that for UDP and TCP.
  const port = (await freePortPair()) + 1;
  const controlPort = await freeUdpPort();
  const { certificate } = options;
  const pair = await Promise.all([certificate.cert, certificate.key].map((path) => readFile(path)));
  const logFile = join(folder, 'log');
  await writeFile(join(folder, 'certificate.pem'), Buffer.concat(pair), { mode: 0o600 });
  await writeFile(join(folder, 'config'), configuration(options, folder, { port, controlPort }));
  await writeFile(join(folder, 'accounts'), account(options, port));
  await writeFile(join(folder, 'contacts'), '');
  const { says } = options;
  if (says !== undefined) await writeFile(join(folder, 'says.wav'), makeWav({ samples: [says] }));
  const args = ['-f', folder, '-v'];
  const baresip = await keepProgram({ program: 'baresip', args, logFile, cwd: folder });
  const log = () => readFile(logFile, 'utf8');
  let last = '';
  keepLog(() => last);
  await eventually(
    async () => baresip.hasEnded() || (await log()).includes('baresip is ready.'),
    ...(['baresip starts', startsWithinMs] as const),
  );
  if (baresip.hasEnded()) throw new Error(`baresip did not start: ${(await log()).slice(-1_000)}`);
  const control = await openControl(controlPort);
  return {
    ...{ port, log, command: control.command, reports: control.reports },
    async [Symbol.asyncDispose]() {
      control.close();
      await baresip.end();
      last = await log();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

type Control = Pick<Baresip, 'command' | 'reports'> & { close(): void };

/** baresip reads and writes JSON in netstrings, on the only connection that it accepts. */
async function openControl(port: number): Promise<Control> {
  const socket = connect(port, '127.0.0.1');
  let received = '';
  let commands = 0;
  socket.on('data', (data: Buffer) => (received += data.toString()));
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  const reports = (expected: RegExp) =>
    eventually(
      () => expected.test(received),
      () => `baresip reports ${expected}; it reported ${received}`,
    );
  return {
    reports,
    command: async (command, params = '') => {
      commands += 1;
      const token = `command-${commands}`;
      const text = JSON.stringify({ command, params, token });
      socket.write(`${text.length}:${text},`);
      const response = new RegExp(`"ok":(true|false),"data":"([^"]*)","token":"${token}"`);
      await reports(response);
      const [, ok, data] = response.exec(received) ?? [];
      if (ok !== 'true') throw new Error(`baresip did not ${command}: ${data}`);
    },
    close: () => socket.destroy(),
  };
}

function configuration(
  { says }: BaresipOptions,
  folder: string,
  { port, controlPort }: { readonly port: number; readonly controlPort: number },
): string {
  return [
    'poll_method epoll',
    `sip_listen 127.0.0.1:${port - 1}`,
    `sip_certificate ${folder}/certificate.pem`,
    'net_interface 127.0.0.1',
    'ausrc_srate 8000',
    'auplay_srate 8000',
    'audio_player aubridge,echo',
    `audio_source ${says === undefined ? 'aubridge,echo' : `aufile,${folder}/says.wav`}`,
    'audio_alert aubridge,alert',
    'module_path /usr/lib/baresip/modules',
    ...modules.map((name) => `module ${name}.so`),
    'module_app menu.so',
    'module_app ctrl_tcp.so',
    `ctrl_tcp_listen 127.0.0.1:${controlPort}`,
    '',
  ].join('\n');
}

function account({ user, encryption }: BaresipOptions, port: number): string {
  const parameters = ['regint=0', 'answermode=auto', 'audio_codecs=pcmu'];
  if (encryption !== 'none') parameters.push(`mediaenc=${encryption}`);
  return `<sip:${user}@127.0.0.1:${port};transport=tls>;${parameters.join(';')}\n`;
}
