// The words for errors of TLS connections. Most are tested with real certificates in test/edge.

import { expect, test } from 'vitest';
import {
  HandshakeTimeoutError,
  TooManyConnectionsError,
  tlsReason,
} from '../../../src/embedded/drachtio/transport/tls-reasons.ts';

const errorOf = (code: string) => Object.assign(new Error('0x7f: secret'), { code });

test.each([
  ['the far end closes without an error', undefined, 'the far end closed the connection'],
  [
    'an alert',
    errorOf('ERR_SSL_TLSV1_ALERT_UNKNOWN_CA'),
    'the far end does not accept our client certificate',
  ],
  ['a system error', errorOf('EHOSTUNREACH'), 'the host cannot be reached'],
  ['an unknown code', errorOf('ERR_SSL_NEWEST'), 'the connection failed (ERR_SSL_NEWEST)'],
  ['a member of every object', errorOf('constructor'), 'the connection failed (constructor)'],
  ['no code', new Error('secret'), 'the connection failed'],
  ['a time-out', new HandshakeTimeoutError(), 'the handshake took too long'],
  ['a limit', new TooManyConnectionsError(), 'too many connections are open'],
])('%s', (_name, error, words) => {
  expect(tlsReason(error)).toBe(`TLS: ${words}`);
});
