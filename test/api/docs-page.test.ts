// The page /docs works without the Internet, and reveals nothing.

import { describe, expect, test } from 'vitest';
import { forSuite } from '../support/opened.ts';
import { startHarness } from './support.ts';

const harness = forSuite(startHarness);

/** The addresses that the page, or a file that it loads, loads in turn. */
function addressesIn(text: string): readonly string[] {
  return [...text.matchAll(/(?:src|href)="([^"]+)"|url\(["']?([^"')]+)/g)].map(
    ([, attribute, style]) => attribute ?? style ?? '',
  );
}

describe('/docs', () => {
  test.each(['/docs', '/docs/'])('loads everything from the gateway, at %s', async (address) => {
    const page = await harness.server.inject(address);
    const assets = addressesIn(page.body);

    expect(page.statusCode).toBe(200);
    expect(page.headers['content-type']).toContain('text/html');
    expect(assets.length).toBeGreaterThan(5);
    for (const asset of assets) {
      const { origin, pathname } = new URL(asset, `http://here${address}`);
      const answer = await harness.server.inject(pathname);
      expect([origin, answer.statusCode]).toEqual(['http://here', 200]);
      if (!pathname.endsWith('.css')) continue;
      for (const inner of addressesIn(answer.body)) expect(inner).toMatch(/^data:/);
    }
  });

  test('is the target of the bare address, under any path of a proxy', async () => {
    const { statusCode, headers } = await harness.server.inject('/');
    const location = String(headers.location);

    expect(statusCode).toBe(302);
    expect(new URL(location, 'http://here/').pathname).toBe('/docs');
    expect(new URL(location, 'http://here/offhook/').pathname).toBe('/offhook/docs');
  });

  test('may load nothing from other origins, and may not be framed', async () => {
    const { headers } = await harness.server.inject('/docs');
    const policy = String(headers['content-security-policy']);

    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toMatch(/https?:|unsafe|\*/);
    expect(headers['x-content-type-options']).toBe('nosniff');
  });

  test('describes the same API, at the origin of the page', async () => {
    const document = (await harness.server.inject('/openapi.json')).json();
    const described = (await harness.server.inject('/docs/json')).json();

    // The page gets no patterns that it would read differently.
    const isReadOtherwise = (name: string, value: unknown) =>
      name === 'pattern' && typeof value === 'string' && value.includes('\\p{');
    const withoutThem = JSON.parse(JSON.stringify(document.paths), (name, value: unknown) =>
      isReadOtherwise(name, value) ? undefined : value,
    ) as unknown;
    expect(described.paths).toEqual(withoutThem);
    expect(described).toEqual({
      ...document,
      servers: [{ url: '..' }],
      paths: described.paths,
    });
  });

  test('does not send the headers of the page with other answers', async () => {
    const { headers } = await harness.server.inject('/openapi.json');

    expect(headers['content-security-policy']).toBeUndefined();
  });

  test.each(['..%2f..%2fpackage.json', '%2e%2e/package.json', '....//package.json', '%00', 'none'])(
    'serves no other file: %s',
    async (path) => {
      const answer = await harness.server.inject(`/docs/static/${path}`);

      expect([400, 404]).toContain(answer.statusCode);
      expect(answer.headers['content-type']).toContain('application/problem+json');
    },
  );
});
