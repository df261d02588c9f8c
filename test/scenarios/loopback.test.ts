// A gateway that other machines can reach refuses to connect to its own machine, unless its
// configuration allows it.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeSeededDataDir } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { type GatewayProcess, startGateway } from '../support/gateway-process.ts';
import { forSuite } from '../support/opened.ts';

let gateway: GatewayProcess;

const dataDir = forSuite(makeSeededDataDir);
beforeAll(async () => {
  gateway = await startGateway(dataDir.path, {
    PUBLIC_URL: 'https://offhook.example.com',
    NOTIFY_ALLOWED_NETWORKS: '',
    LOG_LEVEL: 'info',
  });
});

afterAll(() => gateway.terminate());

test.each([
  ['notifyurl', { target: 'tel:+15550100001', notifyurl: 'http://127.0.0.1:4222/' }],
  ['notifyurl', { target: 'tel:+15550100001', notifyurl: 'http://[::ffff:7f00:1]/' }],
  ['target', { target: 'sip:anybody@127.0.0.1:5060' }],
])('%s on this machine is a 400: %j', async (path, request) => {
  const answer = await gateway.dialer.post(request);

  expect(answer).toMatchObject({ status: 400, body: { errors: [{ path }] } });
});

test('the log says why a receiver on this machine is refused', () => {
  expect(gateway.output()).toMatch(
    /"because":\["PUBLIC_URL"\].*NOTIFY_ALLOWED_NETWORKS allows them/,
  );
});

test('a gateway that started without trunks does not load any on SIGHUP', async () => {
  gateway.child.kill('SIGHUP');

  await eventually(
    () => gateway.output().includes('trunks were not reloaded'),
    'the log says that trunks are not reloaded',
  );
  expect(gateway.output()).toContain('the process started without trunks; restart it to use them');
});
