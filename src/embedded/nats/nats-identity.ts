// What our private nats-server (the one that the gateway runs as a child process) keeps across
// restarts. It keeps its port and credentials, so that bots can reconnect, and a name by which we
// recognise it if another program is listening on the port. All of this is stored in DATA_DIR/nats,
// where only the owner can read it.

import { randomBytes } from 'node:crypto';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { z } from 'zod';

const identitySchema = z.object({
  port: z.number().int().min(1).max(65_535),
  serverName: z.string().min(1),
  user: z.string().min(1),
  password: z.string().min(1),
});

export type NatsIdentity = Readonly<z.infer<typeof identitySchema>>;

export type NatsFiles = {
  readonly folder: string;
  readonly identity: string;
  readonly configuration: string;
  readonly pid: string;
  readonly store: string;
  /** The server's log file. */
  readonly output: string;
};

export function natsFiles(dataDir: string): NatsFiles {
  const folder = join(dataDir, 'nats');
  return {
    folder,
    identity: join(folder, 'identity.json'),
    configuration: join(folder, 'nats-server.conf'),
    pid: join(folder, 'nats-server.pid'),
    store: join(folder, 'store'),
    output: join(folder, 'nats-server.log'),
  };
}

export function natsUrl(identity: NatsIdentity): string {
  return `nats://${identity.user}:${identity.password}@127.0.0.1:${identity.port}`;
}

/** Returns the identity of the server that has run here before, or a new identity. */
export async function loadIdentity(files: NatsFiles): Promise<NatsIdentity> {
  await mkdir(files.store, { recursive: true, mode: 0o700 });
  const stored = await readIdentity(files.identity);
  if (stored !== undefined) return stored;
  const identity: NatsIdentity = {
    port: await freePort(),
    serverName: `offhook-${randomBytes(8).toString('hex')}`,
    user: 'offhook',
    password: randomBytes(24).toString('base64url'),
  };
  await saveIdentity(files, identity);
  return identity;
}

/** Switches to a free port. Call this if the old port is in use by another program. */
export async function moveToFreePort(
  files: NatsFiles,
  identity: NatsIdentity,
): Promise<NatsIdentity> {
  const moved = { ...identity, port: await freePort() };
  await saveIdentity(files, moved);
  return moved;
}

export async function writeConfiguration(files: NatsFiles, identity: NatsIdentity): Promise<void> {
  // The settings are in a file because command line arguments are visible to every user on the
  // machine.
  const text = [
    `server_name: ${JSON.stringify(identity.serverName)}`,
    `listen: "127.0.0.1:${identity.port}"`,
    `pid_file: ${JSON.stringify(files.pid)}`,
    `jetstream { store_dir: ${JSON.stringify(files.store)} }`,
    `authorization { user: ${JSON.stringify(identity.user)}, password: ${JSON.stringify(identity.password)} }`,
    '',
  ].join('\n');
  await writePrivate(files.configuration, text);
}

async function readIdentity(path: string): Promise<NatsIdentity | undefined> {
  try {
    const parsed = identitySchema.safeParse(JSON.parse(await readFile(path, 'utf8')));
    return parsed.success ? parsed.data : undefined;
  } catch {
    // The file is missing, or a crash has truncated it. Either way, we can use a new identity.
    return undefined;
  }
}

function saveIdentity(files: NatsFiles, identity: NatsIdentity): Promise<void> {
  return writePrivate(files.identity, `${JSON.stringify(identity, null, 2)}\n`);
}

async function writePrivate(path: string, text: string): Promise<void> {
  await writeFile(path, text, { mode: 0o600 });
  // The mode above only applies if the file is new.
  await chmod(path, 0o600);
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address();
      const port = typeof address === 'object' && address !== null ? address.port : 0;
      probe.close(() => resolve(port));
    });
  });
}
