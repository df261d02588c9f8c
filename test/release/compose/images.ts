// Builds the stand-ins as images, under the names that docker-compose.yml and the Dockerfile use.
// Each Dockerfile here reproduces only those properties of an image that this project depends on.

import { existsSync } from 'node:fs';
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run, say } from './run.ts';
import { places } from './stand-ins.ts';

const base = 'offhook-test-base';

/** What an image adds to the base. `context` holds the files of the build context. */
type Image = {
  readonly lines: readonly string[];
  readonly entryPoint?: string;
  readonly context?: Readonly<Record<string, string>>;
};

const haproxy: Image = {
  lines: [
    'RUN ln -sf /bin/busybox /usr/bin/wget && mkdir -p /usr/local/etc/haproxy',
    'USER 99:99',
    'STOPSIGNAL SIGUSR1',
    'CMD ["haproxy", "-W", "-db", "-f", "/usr/local/etc/haproxy/haproxy.cfg"]',
  ],
};

const nats: Image = { lines: ['RUN ln -sf /bin/busybox /usr/bin/wget', 'CMD ["nats-server"]'] };

const postgres: Image = {
  entryPoint: `#!/bin/bash
set -e
if [ "$(id -u)" = 0 ]; then
  mkdir -p "$PGDATA" && chown -R postgres "$PGDATA" && chmod 700 "$PGDATA"
  mkdir -p /run/postgresql && chown postgres /run/postgresql && chmod 775 /run/postgresql
  exec gosu postgres "$0" "$@"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  initdb --username="$POSTGRES_USER" --pwfile=<(echo "$POSTGRES_PASSWORD")
  echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
  echo "listen_addresses = '*'" >> "$PGDATA/postgresql.conf"
  pg_ctl -o "-c listen_addresses=''" -w start
  createdb -U "$POSTGRES_USER" "$POSTGRES_DB"
  pg_ctl -m fast -w stop
fi
exec "$@"
`,
  lines: [
    'ENV PATH=/usr/lib/postgresql/17/bin:/usr/sbin:/usr/bin PGDATA=/var/lib/postgresql/data',
    'STOPSIGNAL SIGINT',
    'VOLUME /var/lib/postgresql/data',
    'CMD ["postgres"]',
  ],
};

function node(cache: string, registry: string): Image {
  const { node: programs, npm } = places(cache);
  return {
    context: { node: programs, npm },
    lines: [
      'COPY node /usr/local',
      'COPY npm /npm-cache',
      'RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm' +
        ' && ln -s ../lib/node_modules/npm/bin/npx-cli.js /usr/local/bin/npx' +
        ' && useradd --uid 1000 --user-group --create-home node',
      `ENV NPM_CONFIG_CACHE=/npm-cache NPM_CONFIG_OFFLINE=true NPM_CONFIG_REGISTRY=${registry}`,
      'CMD ["node"]',
    ],
  };
}

/**
 * The embedded engine in place of drachtio. It speaks the protocol of drachtio, and its options
 * come from the command and variables of the real image.
 */
const drachtioStandIn: Image = {
  entryPoint: `#!/bin/bash
exec node /app/dist/cli.js sip-engine --sip-host 127.0.0.1 --sip-port 5060 \\
  --control-host "$DRACHTIO_ADMIN_ADDRESS" --control-port "$DRACHTIO_ADMIN_TCP_PORT" --secret "$DRACHTIO_SECRET"
`,
  lines: ['USER root'],
};

function drachtio(folder: string): Image {
  return {
    context: { drachtio: folder },
    entryPoint: '#!/bin/bash\nshift\nexec /opt/drachtio/drachtio "$@"\n',
    lines: [
      'COPY drachtio /opt/drachtio',
      'ENV LD_LIBRARY_PATH=/opt/drachtio/lib',
      // The settings of docker.drachtio.conf.xml that the variables do not cover.
      `RUN echo '<drachtio><admin port="9022" secret="cymru">127.0.0.1</admin><sip><contacts/></sip>` +
        `<logging><console/></logging></drachtio>' > /etc/drachtio.conf.xml`,
    ],
  };
}

export async function buildStandIns(cache: string): Promise<void> {
  const registry = (await run('npm', ['config', 'get', 'registry'])).trim();
  if ((await run('docker', ['images', '-q', base])) === '') {
    say('importing the base');
    await run('docker', ['import', places(cache).base, base]);
  }
  await buildImage('node:24-bookworm-slim', base, node(cache, registry));
  await buildImage('haproxy:3.2-alpine', base, haproxy);
  await buildImage('nats:2.11-alpine', base, nats);
  await buildImage('postgres:17-alpine', base, postgres);
}

/**
 * Builds the drachtio image: with a real drachtio if the cache has one, otherwise from the image of
 * the gateway, which must exist.
 */
export async function buildDrachtio(cache: string, gatewayImage: string): Promise<void> {
  const folder = places(cache).drachtio;
  const tag = 'drachtio/drachtio-server:0.9.10';
  if (existsSync(folder)) await buildImage(tag, base, drachtio(folder));
  else await buildImage(tag, gatewayImage, drachtioStandIn);
}

async function buildImage(tag: string, from: string, image: Image): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'offhook-image-'));
  try {
    for (const [name, source] of Object.entries(image.context ?? {})) {
      await cp(source, join(folder, name), { recursive: true });
    }
    const lines = [`FROM ${from}`, ...image.lines];
    if (image.entryPoint !== undefined) {
      await writeFile(join(folder, 'entrypoint.sh'), image.entryPoint, { mode: 0o755 });
      const entry = 'COPY entrypoint.sh /entrypoint.sh\nENTRYPOINT ["/entrypoint.sh"]';
      // The entry point must come before the command, because Docker resets a command that an entry
      // point follows.
      lines.splice(1, 0, entry);
    }
    await writeFile(join(folder, 'Dockerfile'), `${lines.join('\n')}\n`);
    // Uses the classic builder, because in some versions of Docker BuildKit is a separate plugin.
    const env = { DOCKER_BUILDKIT: '0' };
    await run('docker', ['build', '-q', '--network', 'none', '-t', tag, folder], { env });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
