// Finds the nats-server program. If there isn't one, the error explains how to install it.

import { access, constants } from 'node:fs/promises';
import { delimiter, isAbsolute, join } from 'node:path';

/**
 * Searched after PATH, because Debian installs daemons in /usr/sbin, which isn't on every user's
 * PATH.
 */
const systemFolders = ['/usr/sbin', '/usr/local/sbin', '/usr/local/bin', '/opt/homebrew/bin'];

/** @param program NATS_SERVER_BIN; default: `nats-server`, looked up on `searchPath` */
export async function findNatsServer(
  program: string | undefined,
  searchPath: string,
): Promise<string> {
  if (program !== undefined && (isAbsolute(program) || program.includes('/'))) {
    if (await isExecutable(program)) return program;
    throw new Error(`NATS_SERVER_BIN is ${program}, but there is no such program.${installHint}`);
  }
  const name = program ?? 'nats-server';
  const folders = [...searchPath.split(delimiter).filter((folder) => folder !== '')];
  for (const folder of [...folders, ...systemFolders]) {
    const path = join(folder, name);
    if (await isExecutable(path)) return path;
  }
  throw new Error(`The program ${name} was not found on PATH.${installHint}`);
}

const installHint =
  ' Install it (Debian and Ubuntu: apt-get install nats-server; macOS: brew install nats-server; others:' +
  ' https://docs.nats.io/running-a-nats-service/introduction/installation), name it in NATS_SERVER_BIN, or set' +
  ' NATS_URL to use a NATS that runs elsewhere.';

async function isExecutable(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
