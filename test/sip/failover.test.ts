import { describe, expect, test } from 'vitest';
import {
  type AttemptFailure,
  mayFailOver,
  retryAfterSeconds,
} from '../../src/sip/legs/failover.ts';

const failure = (kind: AttemptFailure['kind'], sipStatus?: number): AttemptFailure => ({
  at: new Date(0),
  kind,
  reason: 'reason',
  ...(sipStatus !== undefined && { sipStatus }),
});

describe('a call moves on to the next gateway', () => {
  test.each([
    ['500 Server Internal Error', failure('response', 500)],
    ['502 Bad Gateway', failure('response', 502)],
    ['503 Service Unavailable', failure('response', 503)],
    ['504 Server Time-out', failure('response', 504)],
    ['silence: a 408 of the stack', failure('stack', 408)],
    ['a closed port: a 503 of the stack', failure('stack', 503)],
    [
      'a request that the engine refused to send',
      { ...failure('transport'), notSent: true as const },
    ],
  ])('after %s', (_name, what) => {
    expect(mayFailOver(what, false)).toBe(true);
    expect(mayFailOver(what, true)).toBe(false);
  });

  test.each([
    ['302 Moved Temporarily', failure('response', 302)],
    ['401 Unauthorized', failure('response', 401)],
    ['403 Forbidden', failure('response', 403)],
    ['404 Not Found', failure('response', 404)],
    ['a real 408', failure('response', 408)],
    ['480 Temporarily Unavailable', failure('response', 480)],
    ['486 Busy Here', failure('response', 486)],
    ['487 Request Terminated', failure('response', 487)],
    ['488 Not Acceptable Here', failure('response', 488)],
    ['600 Busy Everywhere', failure('response', 600)],
    ['603 Decline', failure('response', 603)],
    ['604 Does Not Exist Anywhere', failure('response', 604)],
    ['607 Unwanted', failure('response', 607)],
    ['608 Rejected', failure('response', 608)],
    ['a 487 of the stack', failure('stack', 487)],
    ['a broken engine connection, whose INVITE may have left', failure('transport')],
    ['a 200 without usable SDP', failure('unusable', 200)],
    ['a CANCEL by this side', failure('cancelled', 487)],
  ])('never after %s', (_name, what) => {
    expect(mayFailOver(what, false)).toBe(false);
  });
});

describe('Retry-After', () => {
  test.each([
    ['18000;duration=3600', 18_000],
    ['120 (I am in a meeting)', 120],
    ['5(now)', 5],
    [' 7 ', 7],
    ['0', 0],
  ])('"%s" is %i s', (header, seconds) => {
    expect(retryAfterSeconds(header)).toBe(seconds);
  });

  test.each([undefined, '', 'soon', '-1', '1e9', '99999999999999999999', 'Fri, 20 Nov 2026'])(
    '%s is ignored',
    (header) => {
      expect(retryAfterSeconds(header)).toBeUndefined();
    },
  );
});
