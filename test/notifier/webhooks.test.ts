import { createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { exampleEvent } from '../../src/calls/contract/event-examples.ts';
import { notificationOf } from '../../src/calls/contract/event-table.ts';
import { signatureHeaders } from '../../src/notifier/signature.ts';
import { type NotificationBody, verify } from '../../src/notifier/webhooks.ts';

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const body = '{"status":"completed","reason":"200 OK","pence":"£"}';
const timestampS = 1_795_161_600;
const now = { nowS: timestampS };

function header(secrets: readonly string[] = [secret]): string {
  return (
    signatureHeaders({ eventId: 'evt-1', timestampS, body, secrets })['gateway-signature'] ?? ''
  );
}

/**
 * Implements the description: HMAC-SHA256 of `${t}.${raw body}`, keyed with the secret as it is
 * written.
 */
function byHand(key: string, text: string): string {
  return createHmac('sha256', key).update(text, 'utf8').digest('hex');
}

describe('Gateway-Signature', () => {
  test('has the documented form', () => {
    expect(header()).toBe(`t=${timestampS},v1=${byHand(secret, `${timestampS}.${body}`)}`);
  });

  test('equals the result of openssl dgst -sha256 -hmac', () => {
    expect(header()).toBe(
      't=1795161600,v1=40d56f5f2dbced70b7fea05713d50801612f8ed5800ccfc0d7cde1c78ec79084',
    );
  });

  test('is verified with the body as text and as bytes', () => {
    expect(verify(body, header(), secret, now)).toEqual({ ok: true, timestampS });
    expect(verify(Buffer.from(body), header(), [secret], now)).toEqual({ ok: true, timestampS });
    expect(verify(new TextEncoder().encode(body), header(), secret, now).ok).toBe(true);
  });

  test('carries one signature for each live secret; either is enough', () => {
    const both = header(['whsec_bmV3', secret]);

    expect(both.match(/v1=/g)).toHaveLength(2);
    expect(verify(body, both, secret, now).ok).toBe(true);
    expect(verify(body, both, 'whsec_bmV3', now).ok).toBe(true);
    expect(verify(body, header(), ['whsec_b2xk', secret], now).ok).toBe(true);
  });

  test('does not match another body, secret or time', () => {
    const other = { ok: false, reason: 'no-match' };

    expect(verify(`${body} `, header(), secret, now)).toEqual(other);
    expect(verify(body, header(), 'whsec_b3RoZXI=', now)).toEqual(other);
    expect(verify(body, header(), secret.slice('whsec_'.length), now)).toEqual(other);
    const later = header().replace(`t=${timestampS}`, `t=${timestampS + 1}`);
    expect(verify(body, later, secret, now)).toEqual(other);
  });

  test.each([
    [0, true],
    [300, true],
    [-300, true],
    [301, false],
    [-301, false],
  ])('a clock that is off by %i s', (offByS, ok) => {
    expect(verify(body, header(), secret, { nowS: timestampS + offByS }).ok).toBe(ok);
  });

  test('the tolerance can be set, and no signature passes if it is not a number', () => {
    const late = { nowS: timestampS + 10 };

    expect(verify(body, header(), secret, { ...late, toleranceS: 10 }).ok).toBe(true);
    expect(verify(body, header(), secret, { ...late, toleranceS: 9 })).toEqual({
      ok: false,
      reason: 'outside-tolerance',
    });
    expect(verify(body, header(), secret, { ...late, toleranceS: Number.NaN }).ok).toBe(false);
  });

  test('skips signatures of unknown versions', () => {
    const more = `v0=abc,${header()},v2=${'0'.repeat(64)},v1=short`;

    expect(verify(body, more, secret, now).ok).toBe(true);
  });

  const hostile: readonly unknown[] = [
    undefined,
    null,
    '',
    [],
    ['a', 'b'],
    42,
    {},
    't=',
    'v1=',
    't=1',
    `v1=${'0'.repeat(64)}`,
    `t=1,t=2,v1=${'0'.repeat(64)}`,
    `t=1e3,v1=${'0'.repeat(64)}`,
    `t=-1,v1=${'0'.repeat(64)}`,
    `t=99999999999999,v1=${'0'.repeat(64)}`,
    `t=${timestampS},v1=${'g'.repeat(64)}`,
    `t=${timestampS},v1=${'0'.repeat(63)}`,
    `t=${timestampS}${',v1='.concat('0'.repeat(64)).repeat(21)}`,
    'x'.repeat(100_000),
    ','.repeat(4_000),
    '='.repeat(4_000),
    '\0\r\n=,t=\u{1f600}',
  ];
  test.each(hostile.map((value) => [JSON.stringify(value)?.slice(0, 60), value]))(
    'a hostile header is refused and never throws: %s',
    (_, value) => {
      expect(verify(body, value as string, secret, now).ok).toBe(false);
    },
  );

  test('a parsed body and a missing secret have reasons of their own', () => {
    expect(verify({ status: 'completed' } as unknown as string, header(), secret, now)).toEqual({
      ok: false,
      reason: 'raw-body-needed',
    });
    for (const none of ['', [], [''], undefined] as unknown as string[]) {
      expect(verify(body, header(['']), none, now)).toEqual({ ok: false, reason: 'no-secret' });
    }
  });
});

describe('Standard Webhooks headers', () => {
  test('match the test vector of the specification', () => {
    // From the test suites of the Standard Webhooks libraries.
    const headers = signatureHeaders({
      eventId: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      timestampS: 1_614_265_330,
      body: '{"test": 2432232314}',
      secrets: [secret],
    });

    expect(headers).toMatchObject({
      'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      'webhook-timestamp': '1614265330',
      'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    });
  });

  test('are separated by a space for several secrets', () => {
    const headers = signatureHeaders({
      eventId: 'evt-1',
      timestampS,
      body,
      secrets: [secret, 'whsec_bmV3'],
    });

    expect(headers['webhook-signature']).toMatch(/^v1,[^ ]{44} v1,[^ ]{44}$/);
  });
});

test('the type of the body separates selected events from the four statuses', () => {
  const pressed = (notification: NotificationBody): string => {
    if (notification.status !== 'Event') return notification.reason;
    const { event } = notification;
    return event.type === 'dtmf' ? event.data.digit : event.type;
  };
  const dtmf = exampleEvent('dtmf', { notificationSequence: 2 });
  const answered = exampleEvent('answered');

  expect(
    [dtmf, answered].map((event) => pressed(notificationOf(event) as NotificationBody)),
  ).toEqual(['5', '200 OK']);
});
