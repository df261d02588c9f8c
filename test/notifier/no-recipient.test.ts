import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { proves } from '../companion/proves.ts';
import { databaseKinds, openTestDatabase, type TestDatabase } from '../support/databases.ts';
import { createNotifierRig, personCall } from './notifier-rig.ts';

describe.each(databaseKinds)('a call without a notify URL, on %s', (kind) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await openTestDatabase(kind);
  });
  afterAll(async () => {
    await database.remove();
  });

  test('owes no notification', async () => {
    proves('notifications.post.rule.omitted');
    const rig = createNotifierRig(database);
    const notifier = await rig.start();

    await notifier.handle(personCall(rig.call(undefined)));

    expect(await rig.states()).toEqual({});
    expect(await rig.lanesLeft()).toBe(0);
    await rig.stop();
  });
});
