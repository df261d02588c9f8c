import { expect, test } from 'vitest';

type Words = { readonly text: string; readonly code?: string; readonly tone?: string };
type Page = {
  readonly notificationWords: (notification: object, isFirst?: boolean) => Words;
  readonly deliveryHistory: (notification: object) => readonly Words[];
};
const page = (await import(
  new URL('../../src/console/page/delivery-words.js', import.meta.url).href
)) as Page;

const createdAt = '2026-11-28T09:00:00.000Z';
const refused = {
  ...{ attempt: 1, startedAt: '2026-11-28T09:00:00.010Z', durationMs: 4, delivered: false },
  error: 'ECONNREFUSED',
};
const failed = {
  ...{ attempt: 2, startedAt: '2026-11-28T09:00:02.000Z', durationMs: 9, delivered: false },
  responseStatus: 500,
};
const accepted = { ...failed, attempt: 3, responseStatus: 204, delivered: true };
const base = { createdAt, attempts: [], replays: [] };

test('a notification has one line with its state and its next try', () => {
  const say = (notification: object, isFirst?: boolean) =>
    page.notificationWords({ ...base, ...notification }, isFirst);
  const nextAttemptAt = '2026-11-28T09:00:12.000Z';

  expect(say({ state: 'pending' }).text).toBe('is being sent');
  expect(say({ state: 'pending' }, false).text).toBe('waits for the notification before it');
  expect(say({ state: 'pending', attempts: [refused], nextAttemptAt })).toEqual({
    text: expect.stringMatching(
      /^not delivered after 1 attempt: nothing listens at its address, after 4 ms; next try at /,
    ),
    ...{ code: 'pending ECONNREFUSED', tone: 'bad' },
  });
  const deliveredAt = '2026-11-28T09:00:00.040Z';
  expect(say({ state: 'delivered', deliveredAt, attempts: [accepted] })).toEqual({
    ...{ text: 'delivered at once', code: 'delivered', tone: 'good' },
  });
  expect(
    say({ state: 'delivered', deliveredAt, attempts: [refused, failed, accepted] }).text,
  ).toMatch(/, at attempt 3$/);
  expect(say({ state: 'failed', failure: 'gone' })).toEqual({
    text: 'given up: the receiver wants no more notifications of this call (410)',
    ...{ code: 'gone', tone: 'bad' },
  });
  expect(say({ state: 'failed', failure: 'expired', attempts: [refused, failed] })).toEqual({
    text: 'given up: the receiver did not accept it within 24 hours (2 attempts, the last: it failed, after 9 ms)',
    ...{ code: 'expired 500', tone: 'bad' },
  });
});

test('its attempts and replays stand in it, in order', () => {
  const replays = [{ replayedAt: '2026-11-28T09:00:01.000Z', by: 'app-dev' }];
  const history = page.deliveryHistory({ attempts: [refused, accepted], replays });

  expect(history.map(({ text, code }) => [text, code])).toEqual([
    ['Attempt 1: nothing listens at its address, after 4 ms', 'ECONNREFUSED'],
    ['sent again by app-dev', undefined],
    ['Attempt 3: accepted after 9 ms', '204'],
  ]);
});
