// The Dockerfile, without a container engine: checks that the files that it copies exist, that it
// starts the program that is built, and that the health checks pass and fail as they should.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { version } from '../../src/version.ts';
import { readCompose, repository, textOf } from './compose.ts';
import { commandOf, copiesOf, readDockerfile } from './dockerfile.ts';

const [build, image] = readDockerfile() as [
  ReturnType<typeof readDockerfile>[number],
  ReturnType<typeof readDockerfile>[number],
];
const manifest = JSON.parse(textOf('package.json')) as {
  bin: { offhook: string };
  scripts: { start: string };
  files: string[];
  dependencies: Record<string, string>;
  description: string;
  license: string;
};
type Names = Readonly<Record<string, string>>;
const { packages: locked } = JSON.parse(textOf('package-lock.json')) as {
  readonly packages: Readonly<
    Record<
      string,
      {
        readonly hasInstallScript?: boolean;
        readonly dev?: boolean;
        readonly dependencies?: Names;
        readonly peerDependencies?: Names;
      }
    >
  >;
};
const runsOf = ({ instructions }: typeof build): readonly string[] =>
  instructions.filter(({ word }) => word === 'RUN').map(({ rest }) => rest);

describe('the Dockerfile', () => {
  test('has the path that docker-compose.yml names, and uses Node 24', () => {
    for (const { build: built } of Object.values(readCompose().services)) {
      if (built !== undefined)
        expect(built).toEqual({ context: '.', dockerfile: '.docker/Dockerfile' });
    }
    expect(build.base).toMatch(/^node:24-/);
    expect(image.base).toBe(build.base);
  });

  test('copies only paths that exist and that .dockerignore does not exclude', () => {
    const ignored = textOf('.dockerignore').trim().split('\n');
    const sources = [build, image]
      .flatMap(copiesOf)
      .filter(({ from }) => from === undefined)
      .flatMap((copy) => copy.sources);

    expect(sources).toContain('src');
    for (const source of sources) {
      expect(existsSync(`${repository}${source}`), source).toBe(true);
      expect(ignored).not.toContain(source);
    }
  });

  test('excludes secrets and generated files from the build, as git does', () => {
    for (const path of ['.env', '.env.*', '*.dump', 'node_modules', 'dist', '.offhook']) {
      expect(textOf('.dockerignore').split('\n')).toContain(path);
      expect(textOf('.gitignore').replaceAll('/\n', '\n').split('\n')).toContain(path);
    }
    // git excludes only these two files, because the examples in the same folder are in git.
    expect(textOf('.dockerignore').split('\n')).toContain('sip-config');
    for (const path of ['sip-config/trunks.yaml', 'sip-config/stt-providers.yaml']) {
      expect(textOf('.gitignore').split('\n')).toContain(path);
    }
  });

  test('runs no install scripts, and no package of production has one', () => {
    expect(runsOf(build).filter((run) => run.includes('npm ci'))).toEqual([
      'npm ci --ignore-scripts',
    ]);
    const withScripts = Object.entries(locked).filter(([, each]) => each.hasInstallScript);
    expect(withScripts.filter(([, { dev }]) => dev !== true)).toEqual([]);
  });

  test('builds like a checkout', () => {
    expect(runsOf(build)).toContain('npm run build');
  });

  test('removes the embedded database, source maps and tools, and lists the remaining packages', () => {
    const steps = runsOf(build).join('\n');
    const embedded = Object.keys(manifest.dependencies).filter((name) => name.includes('pglite'));
    expect(embedded).toHaveLength(2);
    for (const name of embedded) expect(steps).toContain(`"dependencies.${name}"`);
    for (const step of [
      'delete devDependencies',
      'npm prune',
      'find node_modules -name "*.map" -delete',
      'find dist -name "*.map" -not -path "dist/bundle/*" -delete',
      'find node_modules -type d -empty -delete',
    ]) {
      expect(steps).toContain(step);
    }
    expect(copiesOf(image).flatMap(({ sources }) => sources)).toContain('/app/sbom.cdx.json');
    // npm would keep the embedded database if another package had it as a dependency or peer.
    const users = Object.entries(locked).filter(([, { dependencies, peerDependencies }]) =>
      embedded.some((name) => name in { ...dependencies, ...peerDependencies }),
    );
    const others = users.filter(([path]) => !/^($|node_modules\/@electric-sql\/)/.test(path));
    expect(others).toEqual([]);
    expect(users.length).toBeGreaterThan(1);
  });

  test('makes files readable for its user, whatever the umask of the checkout', () => {
    const readable =
      /chmod -R a\+rX (.*?) &&/.exec(runsOf(build).join('\n'))?.[1]?.split(' ') ?? [];
    for (const { from, chmod, sources } of copiesOf(image)) {
      if (from === undefined) expect(chmod).toBe('644');
      else
        for (const source of sources) {
          expect(readable).toContain(source.replace('/app/', '').split('/')[0]);
        }
    }
  });

  test('has labels with its description, version, licence and revision', () => {
    const { rest: labels = '' } = image.instructions.find(({ word }) => word === 'LABEL') ?? {};
    for (const [name, value] of [
      ['version', version],
      ['licenses', manifest.license],
      ['description', manifest.description],
      // biome-ignore lint/suspicious/noTemplateCurlyInString: a variable of the Dockerfile
      ['revision', '${REVISION}'],
    ]) {
      expect(labels).toContain(`org.opencontainers.image.${name}="${value}"`);
    }
  });

  test('copies all files of the package, except pages, receivers and mounted files', () => {
    const copied = copiesOf(image).flatMap(({ sources }) =>
      sources.map((source) => source.replace(/^\/app\//, '')),
    );

    expect(copied).toContain('node_modules');
    const isLeftOut = /^!|\.md$|^sip-config$|\/kits$/;
    for (const path of manifest.files.filter((each) => !isLeftOut.test(each))) {
      expect(copied).toContain(path);
    }
  });

  test('starts the built program, and links the command offhook', () => {
    const { outDir, rootDir } = (
      JSON.parse(textOf('tsconfig.json')) as { compilerOptions: Record<string, string> }
    ).compilerOptions;
    const [program, ...args] = commandOf(image, 'CMD');
    const script = args.at(-1) ?? '';

    expect(program).toBe('node');
    const source = script.replace(`${outDir}/`, `${rootDir}/`).replace(/js$/, 'ts');
    expect(source).toBe('src/main.ts');
    expect(existsSync(`${repository}${source}`)).toBe(true);
    expect(runsOf(image).join('\n')).toContain(
      `ln -s /app/${manifest.bin.offhook} /usr/local/bin/offhook`,
    );
  });

  test('limits memory like `npm start`, and so does the systemd unit', () => {
    const limits = /--max-semi-space-size=\d+|MALLOC_\w+=\d+/g;
    const limitsIn = (text: string) => [...new Set(text.match(limits))].sort();
    const expected = limitsIn(manifest.scripts.start);

    expect(expected).toHaveLength(3);
    expect(limitsIn(image.instructions.map(({ rest }) => rest).join('\n'))).toEqual(expected);
    expect(limitsIn(textOf('sip-config/offhook.service'))).toEqual(expected);
  });

  test('does not run as root', () => {
    expect(image.instructions.findLast(({ word }) => word === 'USER')?.rest).toBe('node');
  });

  const checks = {
    'of the image': { command: commandOf(image, 'HEALTHCHECK'), path: '/live' },
    'of docker-compose.yml': {
      command: readCompose().services['gateway-1']?.healthcheck.test.slice(1) ?? [],
      path: '/ready',
    },
  };

  test.each(Object.entries(checks))(
    'the health check %s passes only on 200',
    async (_name, check) => {
      const asked: (string | undefined)[] = [];
      let status = 200;
      const server = createServer((request, response) => {
        asked.push(request.url);
        response.writeHead(status).end('{}');
      });
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      onTestFinished(() => void server.close());
      const { port } = server.address() as AddressInfo;

      expect(await exitOf(check.command, port)).toBe(0);
      status = 503;
      expect(await exitOf(check.command, port)).toBe(1);
      expect(asked).toEqual([check.path, check.path]);
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      expect(await exitOf(check.command, port)).toBe(1);
    },
  );
});

async function exitOf([, ...args]: readonly string[], port: number): Promise<number | null> {
  const child = spawn(process.execPath, args, {
    env: { HTTP_PORT: String(port) },
    stdio: 'ignore',
  });
  const [code] = (await once(child, 'exit')) as [number | null];
  return code;
}
