import { describe, expect, test } from 'vitest';
import { covers } from '../specification/covers.ts';
import { databaseKinds, openTestDatabase } from '../support/databases.ts';
import { forSuite } from '../support/opened.ts';
import { createNotifierRig, personCall } from './notifier-rig.ts';

describe.each(databaseKinds)('a call without a notify URL, on %s', (kind) => {
  const database = forSuite(() => openTestDatabase(kind));

  test('owes no notifications', async () => {
    covers('notifications.post.rule.omitted');
    const rig = createNotifierRig(database);
    const notifier = await rig.start();

    await notifier.handle(personCall(rig.call(undefined)));

    expect(await rig.states()).toEqual({});
    expect(await rig.lanesLeft()).toBe(0);
    await rig.stop();
  });
});
