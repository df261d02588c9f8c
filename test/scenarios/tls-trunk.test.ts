// Offhook with the embedded SIP engine and a trunk over TLS, whose CA the gateway learns from a
// reload.

import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { answer } from '../sip/trunk-world.ts';
import { createCa } from '../support/certificates.ts';
import { makeSeededDataDir } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { startGateway } from '../support/gateway-process.ts';
import { forSuite } from '../support/opened.ts';
import { startReceiver } from '../support/receiver.ts';
import { startTlsCallee } from '../support/tls-channel.ts';

const dataDir = forSuite(makeSeededDataDir);
const receiver = forSuite(startReceiver);

test('a trunk over TLS says why it fails, and carries calls after a reload', async () => {
  const ca = await createCa(dataDir.path, 'carrier-ca');
  const certificate = await ca.issue('localhost');
  await using carrier = await startTlsCallee(certificate);
  const trunksFile = join(dataDir.path, 'trunks.yaml');
  const writeTrunk = (more: string) =>
    writeFile(
      trunksFile,
      `trunks:\n  - name: secure\n    gateways:\n      - { host: localhost, port: ${carrier.port}, transport: tls }\n${more}`,
    );
  await writeTrunk('');
  const gateway = await startGateway(dataDir.path, {
    TRUNKS_FILE: trunksFile,
    NOTIFY_ALLOWED_NETWORKS: '127.0.0.0/8',
    LOG_LEVEL: 'info',
  });
  const reload = async (logged: string) => {
    const before = gateway.output().length;
    gateway.child.kill('SIGHUP');
    await eventually(() => gateway.output().slice(before).includes(logged), `logs ${logged}`);
  };
  const dial = () => gateway.dialer.dial({ target: 'tel:+15551230001', notifyurl: receiver.url });
  try {
    const refused = await dial();
    expect((await receiver.untilEnded(refused.callId)).at(-1)).toMatchObject({
      outcome: 'carrier-failure',
      reason: 'TLS: certificate is from an unknown CA',
    });
    expect(carrier.callee.inbox).toEqual([]);

    await writeTrunk('    tls: { caFile: nowhere.pem }\n');
    await reload('trunks[0].tls.caFile: cannot be read: ENOENT');
    await writeTrunk('    tls: { caFile: carrier-ca.pem }\n');
    await reload('trunks reloaded');

    const accepted = await dial();
    const invite = await carrier.callee.take('INVITE');
    carrier.callee.reply(invite, 200, 'OK', { body: answer });
    await carrier.callee.take('ACK');
    carrier.callee.request(invite, 'BYE');
    expect((await receiver.untilEnded(accepted.callId)).at(-1)).toMatchObject({
      outcome: 'completed',
    });
    expect(gateway.output()).not.toContain(readFileSync(certificate.key, 'utf8').slice(30, 60));
  } finally {
    await gateway.terminate();
  }
});
