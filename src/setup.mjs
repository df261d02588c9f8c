// Sets up a fresh machine: installs the dependencies and nats-server, then builds. With --test it
// also installs sipp, PostgreSQL and other programs. You can run it any number of times. It is
// plain JavaScript without packages, because it has to run before anything is installed.
//
//   node src/setup.mjs [--test] [--kits] [--console] [--metrics] [--rtpengine] [--s3]
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const forTests = process.argv.includes('--test');
const forKits = process.argv.includes('--kits');
const forConsole = process.argv.includes('--console');
const forMetrics = process.argv.includes('--metrics');
const forRtpengine = process.argv.includes('--rtpengine');
const forS3 = process.argv.includes('--s3');

const log = (text) => console.error(`setup: ${text}`);
const fail = (text) => {
  console.error(`setup: ${text}`);
  process.exit(1);
};

const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 19))
  fail(`Offhook needs Node 20.19 or later, but this is Node ${process.version}`);

installDependencies();
installPrograms();
build();
linkCommand();

function installDependencies() {
  const stamp = join(root, 'node_modules', '.offhook-lock');
  const wanted = createHash('sha256')
    .update(readFileSync(join(root, 'package-lock.json')))
    .digest('hex');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return;
  log('installing npm dependencies');
  // The build bundles packages, so we remove its stamp before installing new ones. Otherwise a
  // build with the old packages could survive if this program is stopped halfway.
  rmSync(join(root, 'dist', '.built'), { force: true });
  run('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], 'npm ci failed');
  writeFileSync(stamp, wanted);
}

function missingPrograms() {
  const needsNats = !(
    process.env.NATS_SERVER_BIN ||
    process.env.NATS_URL ||
    process.env.NATS_URL_FILE
  );
  const wanted = [
    ['nats-server', !needsNats || onPath('nats-server')],
    ['chromium', !forConsole || onPath('chromium')],
    ['prometheus', !forMetrics || (onPath('prometheus') && onPath('promtool'))],
    ['rtpengine-daemon', !forRtpengine || onPath('rtpengine')],
    ...(forS3 ? programsOfSwift() : []),
    ...(forTests ? programsOfTests() : []),
    ...(forKits ? programsOfKits() : []),
  ];
  return wanted.filter(([, isThere]) => !isThere).map(([name]) => name);
}

function programsOfTests() {
  return [
    ['sip-tester', onPath('sipp')],
    ['postgresql', postgresInstalled()],
    ['haproxy', onPath('haproxy')],
    ['pgbouncer', onPath('pgbouncer')],
    ['kamailio', onPath('kamailio')],
    ['baresip-core', onPath('baresip')],
    ['kamailio-tls-modules', hasKamailioTls()],
    ['curl', onPath('curl')],
    // `script` gives the tests a terminal. Normally every Debian has this package.
    ['bsdutils', onPath('script')],
    ['python3', onPath('python3')],
    ['tshark', onPath('tshark')],
  ];
}

/** Returns the Debian packages of an S3 server that calculates signatures. */
function programsOfSwift() {
  const servers = ['proxy', 'account', 'container', 'object'];
  return [
    ...servers.map((name) => [`swift-${name}`, onPath(`swift-${name}-server`)]),
    ['memcached', onPath('memcached')],
  ];
}

/** Returns the Debian packages for the languages in src/notifier/kits. */
function programsOfKits() {
  return [
    ['python3-flask', existsSync('/usr/lib/python3/dist-packages/flask')],
    ['golang-go', onPath('go')],
    ['php-cli', onPath('php')],
    ['ruby', onPath('ruby')],
    ['ruby-webrick', existsSync('/usr/share/rubygems-integration/all/gems') && hasWebrick()],
    ['default-jdk-headless', onPath('javac')],
    ['libgoogle-gson-java', existsSync('/usr/share/java/gson.jar')],
  ];
}

function hasWebrick() {
  const gems = readdirSync('/usr/share/rubygems-integration/all/gems');
  return gems.some((gem) => gem.startsWith('webrick-'));
}

function installPrograms() {
  const missing = missingPrograms();
  if (missing.length === 0) return;
  if (!onPath('apt-get')) {
    fail(
      `these programs are missing: ${missing.join(', ')} (Debian package names). Install them, put them on PATH, and run this program again. nats-server: https://docs.nats.io/running-a-nats-service/introduction/installation`,
    );
  }
  log(`installing ${missing.join(', ')} with apt-get`);
  const apt = (args) => runAsRoot(['apt-get', ...args]);
  // Debian's systemd starts a server as soon as it's installed. These would take SIP's port on all
  // addresses, and load a kernel module. The tests start their own.
  for (const name of ['kamailio', 'rtpengine-daemon'])
    if (missing.includes(name) && existsSync('/run/systemd/system'))
      runAsRoot(['systemctl', 'mask', `${name}.service`]);
  // If an install fails, it's usually because of a stale package list. We update the list and try
  // once more.
  const install = ['install', '-y', '--no-install-recommends', ...missing];
  let result = apt(install);
  if (result.status !== 0) {
    apt(['update']);
    result = apt(install);
  }
  if (result.status !== 0)
    fail(
      `apt-get install ${missing.join(' ')} failed:\n${result.stderr || result.error?.message || result.stdout}`,
    );
}

function runAsRoot(command) {
  const [program, ...args] = process.getuid?.() === 0 ? command : ['sudo', '-n', ...command];
  return spawnSync(program, args, {
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    encoding: 'utf8',
  });
}

function build() {
  const built = join(root, 'dist', '.built');
  const newest = newestChange(join(root, 'src'));
  if (existsSync(built) && Number(readFileSync(built, 'utf8')) >= newest) return;
  log('building');
  rmSync(join(root, 'dist'), { recursive: true, force: true });
  run(
    process.execPath,
    [join(root, 'node_modules', 'typescript', 'bin', 'tsc'), '-p', join(root, 'tsconfig.json')],
    'the build failed',
  );
  run(process.execPath, [join(root, 'src', 'bundle.mjs')], 'the build failed');
  // The compiler keeps the shebang of cli.ts but doesn't make the file executable.
  chmodSync(join(root, 'dist', 'cli.js'), 0o755);
  writeFileSync(built, String(newest));
}

/** Makes `npx offhook` work in a checkout. npm itself links only the dependencies' bins. */
function linkCommand() {
  const link = join(root, 'node_modules', '.bin', 'offhook');
  if (existsSync(link)) return;
  mkdirSync(dirname(link), { recursive: true });
  symlinkSync(join('..', '..', 'dist', 'cli.js'), link);
}

function newestChange(folder) {
  let newest = 0;
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    newest = Math.max(newest, entry.isDirectory() ? newestChange(path) : statSync(path).mtimeMs);
  }
  return newest;
}

function onPath(program) {
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin'];
  return folders.some((folder) => folder !== '' && existsSync(join(folder, program)));
}

/** Debian puts Kamailio's modules into a folder for the machine's architecture. */
function hasKamailioTls() {
  return ['/usr/lib', '/usr/local/lib', '/usr/lib64']
    .filter((folder) => existsSync(folder))
    .flatMap((folder) => [folder, ...readdirSync(folder).map((name) => join(folder, name))])
    .some((folder) => existsSync(join(folder, 'kamailio', 'modules', 'tls.so')));
}

function postgresInstalled() {
  if (onPath('initdb')) return true;
  const versions = '/usr/lib/postgresql';
  return (
    existsSync(versions) &&
    readdirSync(versions).some((version) => existsSync(join(versions, version, 'bin', 'initdb')))
  );
}

function run(command, args, problem) {
  const result = spawnSync(command, args, { cwd: root, encoding: 'utf8' });
  if (result.status !== 0)
    fail(`${problem}:\n${result.stderr || ''}${result.stdout || ''}${result.error?.message ?? ''}`);
}
