// Every time that the service returns is ISO 8601 UTC with milliseconds: in the document, and from
// either database.

import { describe, expect, test } from 'vitest';
import { timestamp } from '../../src/calls/contract/timestamp.ts';
import { covers } from '../specification/covers.ts';
import { acceptedCall } from '../support/call-records.ts';
import { databaseKinds } from '../support/databases.ts';
import { forSuite } from '../support/opened.ts';
import { insertRows } from '../support/tables.ts';
import { startRig } from './support.ts';

type Node = { readonly [name: string]: unknown };
const reference = { $ref: '#/components/schemas/Timestamp' };

/** Returns the members of responses and notifications, by name. References are followed once. */
function membersOf(document: Node): ReadonlyMap<string, readonly Node[]> {
  const members = new Map<string, Node[]>();
  const { schemas } = document['components'] as { readonly schemas: Node };
  const followed = new Set<unknown>();
  const visit = (node: Node): void => {
    for (const [member, schema] of Object.entries(objectIn(node['properties']))) {
      members.set(member, [...(members.get(member) ?? []), objectIn(schema)]);
    }
    for (const [key, child] of Object.entries(node)) {
      if (typeof child === 'object' && key !== 'examples') visit(objectIn(child));
    }
    const name = String(node['$ref']).replace('#/components/schemas/', '');
    if (followed.has(name)) return;
    followed.add(name);
    visit(objectIn(schemas[name]));
  };
  for (const path of Object.values(objectIn(document['paths']))) {
    for (const operation of Object.values(objectIn(path))) {
      visit(objectIn(objectIn(operation)['responses']));
    }
  }
  visit(objectIn(objectIn(document['webhooks'])['callNotification']));
  return members;
}

function objectIn(value: unknown): Node {
  return typeof value === 'object' && value !== null ? (value as Node) : {};
}

describe.each(databaseKinds)('times on %s', (kind) => {
  const rig = forSuite(() => startRig(kind));

  test('all have the documented form', async () => {
    covers('service.data.rule.timestamps');
    const members = membersOf((await rig.server.inject('/openapi.json')).json<Node>());
    const named = [...members].filter(([name]) =>
      /(At|On|_On|Time|TimeStamp|^time|^timestamp)$/.test(name),
    );

    for (const [name, schemas] of named) {
      for (const schema of schemas)
        expect({ name, ...schema }).toMatchObject({ name, ...reference });
    }
    expect(named.map(([name]) => name)).toEqual(
      expect.arrayContaining(
        [
          ['createdOn', 'modifiedOn', 'Created_On', 'Updated_On', 'startTime', 'endTime'],
          ['queueStartTime', 'assignedAt', 'startTimeStamp', 'endTimeStamp', 'transferredAt'],
          ['callConnectTime', 'callDisconnectTime', 'timestamp'],
        ].flat(),
      ),
    );
    const formats = [...members.values()].flat().filter(({ format }) => format !== undefined);
    expect(formats.filter(({ format }) => format === 'date-time')).toEqual([]);
  });

  test.each(['2026-03-01T10:00:00.000Z', '2026-03-01T10:00:00.120Z', '2026-10-25T00:59:59.999Z'])(
    '%s is returned as it was stored, whatever the zone of the session',
    async (text) => {
      const call = acceptedCall({ acceptedAt: new Date(text) });
      await insertRows(rig.database.pool, 'calls', [
        { ...call, dialBefore: new Date(text), state: 'queued', status: 'queued' },
      ]);
      const client = await rig.database.pool.connect();
      try {
        for (const zone of ['Asia/Kolkata', 'Europe/Berlin', 'UTC']) {
          await client.query(`set timezone to '${zone}'`);
          const { rows } = await client.query<{ accepted_at: Date }>(
            'select accepted_at from calls',
          );
          expect(rows.map((row) => row.accepted_at.toISOString())).toEqual([text]);
        }
      } finally {
        await client.query('set timezone to default');
        client.release();
        await rig.clear();
      }
    },
  );
});

test.each([
  ['2026-03-01T10:00:00.000Z', '2026-03-01T10:00:00.000Z'],
  ['2026-03-01T10:00:00Z', '2026-03-01T10:00:00.000Z'],
  ['2026-03-01T10:00:00.1239Z', '2026-03-01T10:00:00.123Z'],
  ['2026-03-01T00:30:00.5+05:30', '2026-02-28T19:00:00.500Z'],
])('%s is written as %s', (text, written) => {
  const { pattern } = timestamp.meta() as { readonly pattern: string };

  expect(timestamp.parse(text)).toBe(written);
  expect(written).toMatch(new RegExp(pattern));
});

test.each([
  '2026-02-29T10:00:00Z',
  '2026-03-01T10:00:00',
  '2026-03-01',
  '0000-01-01T00:00:00+01:00',
  '9999-12-31T23:59:59-01:00',
])('%s is not a valid time', (text) => {
  expect(timestamp.safeParse(text).success).toBe(false);
});
