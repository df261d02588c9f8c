// Runs a real baresip as a phone that accepts each call at once, and sends back what it hears.

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Certificate } from './certificates.ts';
import { eventually } from './eventually.ts';
import { freePortPair } from './free-port.ts';
import { keepLog } from './gateway-logs.ts';
import { keepProgram } from './kept-program.ts';

export type BaresipOptions = {
  /** The number that baresip has. */
  readonly user: string;
  readonly certificate: Certificate;
  /** `srtp-mand`: refuses calls without encryption. */
  readonly encryption: 'srtp-mand' | 'srtp' | 'none';
};

export type Baresip = AsyncDisposable & {
  /** Port for TLS. */
  readonly port: number;
  readonly log: () => Promise<string>;
};

const startsWithinMs = 20_000;
const modules = ['g711', 'srtp', 'aubridge', 'account'];

export async function startBaresip(options: BaresipOptions): Promise<Baresip> {
  const folder = await mkdtemp(join(tmpdir(), 'offhook-baresip-'));
  // baresip listens for TLS on the port after that for UDP and TCP.
  const port = (await freePortPair()) + 1;
  const { certificate } = options;
  const pair = await Promise.all([certificate.cert, certificate.key].map((path) => readFile(path)));
  const logFile = join(folder, 'log');
  await writeFile(join(folder, 'certificate.pem'), Buffer.concat(pair), { mode: 0o600 });
  await writeFile(join(folder, 'config'), configuration(folder, port));
  await writeFile(join(folder, 'accounts'), account(options, port));
  await writeFile(join(folder, 'contacts'), '');
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
  return {
    port,
    log,
    async [Symbol.asyncDispose]() {
      await baresip.end();
      last = await log();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function configuration(folder: string, port: number): string {
  return [
    'poll_method epoll',
    `sip_listen 127.0.0.1:${port - 1}`,
    `sip_certificate ${folder}/certificate.pem`,
    'net_interface 127.0.0.1',
    'ausrc_srate 8000',
    'auplay_srate 8000',
    'audio_player aubridge,echo',
    'audio_source aubridge,echo',
    'audio_alert aubridge,alert',
    'module_path /usr/lib/baresip/modules',
    ...modules.map((name) => `module ${name}.so`),
    'module_app menu.so',
    '',
  ].join('\n');
}

function account({ user, encryption }: BaresipOptions, port: number): string {
  const parameters = ['regint=0', 'answermode=auto', 'audio_codecs=pcmu'];
  if (encryption !== 'none') parameters.push(`mediaenc=${encryption}`);
  return `<sip:${user}@127.0.0.1:${port};transport=tls>;${parameters.join(';')}\n`;
}
