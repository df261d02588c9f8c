import { expect, test } from 'vitest';
import { createAlertPublisher } from '../../src/events/alerts.ts';
import { startTestNats } from '../support/nats.ts';
import { forSuite } from '../support/opened.ts';
import { ensureStreams } from '../support/streams.ts';

const nats = forSuite(startTestNats);

test('an alert is stored on the subject of its account and app, once for its id', async () => {
  const connection = await nats.connect();
  await ensureStreams(connection, { eventDays: 1, contextHours: 1 });
  const publish = createAlertPublisher(connection);
  const alert = { id: 'alert-1', accountId: 'acme', appId: 'app-1' };

  await publish(alert);
  await publish(alert);

  const stream = `${connection.prefix}_alerts`;
  const { state, config } = await connection.manager.streams.info(stream);
  expect(state.messages).toBe(1);
  expect(config.max_bytes).toBeGreaterThan(0);
  const stored = await connection.manager.streams.getMessage(stream, {
    last_by_subj: `${connection.prefix}.alert.acme.app-1`,
  });
  expect(stored?.json()).toEqual(alert);
  await expect(publish({ ...alert, appId: 'a.b' })).rejects.toThrow('not a subject token');
});
