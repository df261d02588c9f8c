// A live call that one node owns, seen through another node.

import { describe, expect, test } from 'vitest';
import { startCluster } from '../support/cluster.ts';
import { openTestDatabase } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { numberFor } from '../support/far-end.ts';
import type { GatewayProcess } from '../support/gateway-process.ts';

type Capture = {
  readonly sip?: { readonly messages: readonly { readonly text: string }[] };
  readonly audio?: { readonly heard: string };
  readonly notes?: { readonly notes: readonly object[] };
  readonly keptBy?: string;
};

async function signIn({ runtime: { httpUrl }, dialer }: GatewayProcess) {
  const { url } = (await dialer.request('POST', '/console/link')).body as { readonly url: string };
  const answer = await fetch(`${httpUrl}/console/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: httpUrl },
    body: JSON.stringify({ token: url.split('token=')[1] }),
  });
  const cookie = answer.headers.get('set-cookie')?.split(';')[0] ?? '';
  return (path: string) => fetch(`${httpUrl}/console/api${path}`, { headers: { cookie } });
}

describe('a live call of another node', () => {
  test('is shown as its node reports it; if that node does not answer, the page gets its name', async () => {
    const database = await openTestDatabase('postgres');
    await using _removed = { [Symbol.asyncDispose]: () => database.remove() };
    await using cluster = await startCluster({
      databaseUrl: database.location.databaseUrl ?? '',
      variables: { NODE_LEASE_MS: '60000' },
    });
    // The name of a node may contain the dots of a host name.
    const owner = await cluster.startNode('gw-1.example.com');
    const target = `tel:+${numberFor('stay', 0, 1)}`;
    const { callId } = await owner.dialer.dial({ target, notifyurl: cluster.receiver.url });
    const ofOwner = async () =>
      (await database.pool.query('select from calls where owner_id is not null')).rowCount;
    await eventually(async () => (await ofOwner()) === 1, 'it is taken');
    const other = await cluster.startNode('gw-2.example.com');
    const ask = await signIn(other);
    const capture = async () => (await (await ask(`/calls/${callId}/capture`)).json()) as Capture;
    const path = `/api/public/bot/${other.dialer.botId}/calls/${callId}/commands`;
    // A command with an id is carried out once, even if its answer was late.
    const press = { command: 'dtmf', digits: '1', id: 'key' };
    await eventually(
      async () => (await other.dialer.request('POST', path, press)).status !== 503,
      'the command reaches the other node',
    );

    await eventually(async () => (await capture()).audio !== undefined, 'it is heard');
    const { sip, notes } = await capture();
    expect(sip?.messages[0]?.text).toMatch(/^INVITE /);
    expect(notes?.notes).toMatchObject([{ what: 'dtmf 1', by: other.dialer.app.appId }]);
    await eventually(
      async () => (await ask(`/calls/${callId}/sip.pcap`)).status === 200,
      'its messages come as packets',
    );

    owner.child.kill('SIGSTOP');
    expect((await capture()).keptBy).toBe('gw-1.example.com');
    expect((await ask(`/calls/${callId}/sip.pcap`)).status).toBe(503);
    owner.child.kill('SIGCONT');
  }, 120_000);
});
