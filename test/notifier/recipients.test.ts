import { expect, test } from 'vitest';
import { rememberRecipients } from '../../src/notifier/recipients.ts';

test('looks a call’s recipient up once, and unknown calls again', async () => {
  const asked: (readonly string[])[] = [];
  const { lookup } = rememberRecipients((callIds) => {
    asked.push(callIds);
    return Promise.resolve(
      new Map(
        callIds
          .filter((id) => id !== 'none')
          .map((id) => [id, { appId: id, accountId: 'acme' }] as const),
      ),
    );
  });

  await lookup(['a', 'none']);
  const second = await lookup(['a', 'b', 'none']);
  const third = await lookup(['a', 'b']);

  expect(asked).toEqual([
    ['a', 'none'],
    ['b', 'none'],
  ]);
  expect([...second.keys()].sort()).toEqual(['a', 'b']);
  expect(third.get('b')).toEqual({ appId: 'b', accountId: 'acme' });
});

test('does not look up the recipient of a call that this process accepted', async () => {
  const { lookup, remember } = rememberRecipients(() => Promise.reject(new Error('asked')));

  remember('a', { appId: 'app', accountId: 'acme', notifyUrl: 'https://dialer.example/calls' });

  expect((await lookup(['a'])).get('a')?.notifyUrl).toBe('https://dialer.example/calls');
});
