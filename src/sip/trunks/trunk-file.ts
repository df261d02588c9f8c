// Reads the trunks file that the configuration names, and builds this gateway's trunks from it. At
// start-up, we check the file before opening anything else, and read it again when we open SIP.

import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename, dirname, resolve } from 'node:path';
import type { Config } from '../../config.ts';
import {
  builtInTrunk,
  loadTrunks,
  type TrunkDirectory,
  type TrunkFile,
  type TrunkSources,
} from './trunks.ts';
import { trunksPath } from './trunks-path.ts';

/**
 * Reads the trunks file. If TRUNKS_FILE names a file, it must exist. sip-config/trunks.yaml is
 * optional.
 * @returns undefined if there is no file
 * @throws Error if the file cannot be read
 */
export async function readTrunkFile(
  config: Pick<Config, 'trunksFile'>,
): Promise<TrunkFile | undefined> {
  const path = trunksPath(config);
  if (path === undefined) return undefined;
  try {
    return { name: basename(path), folder: dirname(path), text: await readFile(path, 'utf8') };
  } catch (error) {
    throw new Error(`TRUNKS_FILE cannot be read: ${path}`, { cause: error });
  }
}

export function sandboxIsOn(
  { sandbox }: Pick<Config, 'sandbox'>,
  file: TrunkFile | undefined,
): boolean {
  return sandbox === undefined ? file === undefined : sandbox === 'on';
}

/**
 * Builds this gateway's trunks.
 * @param sandbox address on which the sandbox accepts INVITEs, or undefined if the sandbox is off
 * @throws Error that lists every mistake in the file
 */
export function trunksOf(
  { drachtioServers }: Pick<Config, 'drachtioServers'>,
  {
    file,
    sandbox,
    secrets,
  }: {
    readonly file: TrunkFile | undefined;
    readonly sandbox: { readonly host: string; readonly port: number } | undefined;
    readonly secrets: TrunkSources['secrets'];
  },
): TrunkDirectory {
  return loadTrunks({
    secrets,
    builtIn:
      sandbox === undefined
        ? []
        : [builtInTrunk('sandbox', { host: sandbox.host, port: sandbox.port, transport: 'udp' })],
    ...(file === undefined ? {} : { file }),
    engine: drachtioServers === undefined ? 'embedded' : 'drachtio',
    readFile: (path) => readFileSync(resolve(file?.folder ?? '', path), 'utf8'),
  });
}
