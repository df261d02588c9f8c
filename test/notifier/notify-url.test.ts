import { describe, expect, test } from 'vitest';
import { notifyUrlProblem } from '../../src/notifier/notify-url.ts';

describe('a notification URL', () => {
  test.each(['http://example.com/hook', 'https://example.com:8443/a?b=c', 'http://127.0.0.1:9/'])(
    'may be %s',
    (url) => {
      expect(notifyUrlProblem(url)).toBeUndefined();
    },
  );

  test.each([
    ['', 'absolute'],
    ['/relative', 'absolute'],
    ['ftp://example.com/', 'http'],
    ['file:///etc/passwd', 'http'],
    ['javascript:alert(1)', 'http'],
    ['http://user:pass@example.com/', 'user or password'],
    ['http://user@example.com/', 'user or password'],
    [`https://example.com/${'a'.repeat(2_048)}`, 'characters'],
  ])('may not be %j', (url, reason) => {
    expect(notifyUrlProblem(url)).toContain(reason);
  });
});
