// Tests of the rig itself, on which the suites of every area depend.

import { describe, expect, test } from 'vitest';
import { databaseKinds } from '../support/databases.ts';
import { forSuite } from '../support/opened.ts';
import { startRig } from './support.ts';

describe.each(databaseKinds)('the rig on %s', (kind) => {
  const rig = forSuite(() => startRig(kind));

  test('distinguishes its apps by their credentials', async () => {
    const url = '/api/public/bot/st-1/calls/no-call';

    expect((await rig.ask('GET', url, undefined, { as: undefined })).statusCode).toBe(401);
    expect((await rig.ask('GET', url, undefined, { as: rig.powerless })).statusCode).toBe(403);
    expect((await rig.ask('GET', url, undefined, { as: rig.rival })).statusCode).toBe(404);
  });

  test('keeps its apps, bots and log when it is cleared', async () => {
    await rig.addBot({ botId: 'st-rival', accountId: 'rival' });

    await rig.clear();

    const url = '/api/public/bot/st-rival/calls/no-call';
    expect((await rig.ask('GET', url)).json()).toMatchObject({ detail: 'There is no such bot.' });
    expect((await rig.ask('GET', url, undefined, { as: rig.rival })).json()).not.toMatchObject({
      detail: 'There is no such bot.',
    });
    expect(rig.logged()).toContain('request answered');
  });
});
