// Checks that the containers have no more rights than they need, and the image no more files.

import assert from 'node:assert/strict';
import { version } from '../../../src/version.ts';
import type { Checkout } from './checkout.ts';
import { run, say } from './run.ts';

/**
 * The capabilities of the first process in a container, as bits: CHOWN, DAC_OVERRIDE, FOWNER,
 * SETGID, SETUID; and the first with the last two. The others have none.
 */
const capabilities: Readonly<Record<string, bigint>> = {
  postgres: 0b1100_1011n,
  backup: 0b1100_0001n,
};

export async function checkContainers(checkout: Checkout): Promise<void> {
  const services = (await checkout.compose('ps', '--services')).trim().split('\n');
  for (const service of services) {
    const sh = (line: string) => checkout.compose('exec', '-T', service, 'sh', '-c', line);
    const status = await sh('cat /proc/1/status');
    const bounding = BigInt(`0x${/^CapBnd:\s*(\w+)$/m.exec(status)?.[1] ?? 'f'}`);
    assert.equal(bounding, capabilities[service] ?? 0n, service);
    assert.match(status, /^NoNewPrivs:\s*1$/m, service);
    if (service !== 'nats') assert.doesNotMatch(status, /^Uid:\s*0\s/m, service);
    assert.equal(
      (await sh('touch /written 2>/dev/null || echo refused')).trim(),
      'refused',
      service,
    );
  }
  say(`${services.length} containers run without needless capabilities and with a read-only root`);
}

export async function checkImage(checkout: Checkout): Promise<void> {
  const sh = (line: string) => checkout.compose('exec', '-T', 'gateway-1', 'sh', '-c', line);
  assert.equal((await sh('ls node_modules | grep electric-sql || echo none')).trim(), 'none');
  assert.equal(
    (await sh('find /app -name "*.map" -not -path "/app/dist/bundle/*" | wc -l')).trim(),
    '0',
  );
  const list = JSON.parse(await sh('cat /app/sbom.cdx.json')) as { components: { name: string }[] };
  const names = list.components.map(({ name }) => name);
  assert.ok(names.includes('fastify') && !names.some((name) => /pglite|typescript/.test(name)));
  const labels = await run('docker', [
    'inspect',
    '-f',
    '{{json .Config.Labels}}',
    `offhook:${version}`,
  ]);
  assert.equal(JSON.parse(labels)['org.opencontainers.image.version'], version);
  say(
    `the image has labels and a list of its ${names.length} packages, and neither PGlite nor source maps outside of its bundle`,
  );
}
