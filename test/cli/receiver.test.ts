// Tests the receiver of `offhook listen` and of the demo.

import { createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { type ReceivedNotification, startReceiver } from '../../src/cli/receiver.ts';

const webhookSecret = 'whsec_dGVzdA==';

function sign(body: string, secret = webhookSecret): string {
  const t = Math.floor(Date.now() / 1_000);
  return `t=${t},v1=${createHmac('sha256', secret).update(`${t}.${body}`).digest('hex')}`;
}

async function post(body: string, signature: string) {
  const received: ReceivedNotification[] = [];
  await using receiver = await startReceiver({
    host: '127.0.0.1',
    port: 0,
    webhookSecret,
    onNotification: (notification) => received.push(notification),
  });
  const response = await fetch(receiver.url, {
    method: 'POST',
    body,
    headers: { 'gateway-signature': signature },
  });
  return { status: response.status, received };
}

describe('the receiver', () => {
  test('accepts a signed notification, and passes on its exact bytes', async () => {
    const body = '{"status": "Answered", "x": "ü"}';

    const { status, received } = await post(body, sign(body));

    expect(status).toBe(200);
    expect(received).toMatchObject([
      { rawBody: body, body: { status: 'Answered', x: 'ü' }, verified: true },
    ]);
  });

  test.each<[string, string, string]>([
    ['another secret', sign('{}', 'whsec_other'), 'no-match'],
    ['another body', sign('{"a":1}'), 'no-match'],
    ['no signature', 'hello', 'malformed-header'],
  ])('refuses %s, and reports it', async (_name, signature, reason) => {
    const { status, received } = await post('{}', signature);

    expect(status).toBe(401);
    expect(received).toMatchObject([{ verified: false, reason }]);
  });

  test('rejects a body that is too long', async () => {
    const { status, received } = await post('x'.repeat(1_100_000), 'none').catch(() => ({
      // The receiver may close the connection before the whole body is written.
      status: 413,
      received: [],
    }));

    expect(status).toBe(413);
    expect(received).toEqual([]);
  });
});
