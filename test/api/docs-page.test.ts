// /docs: a page that works where there is no Internet, and that gives nothing away.

import { describe, expect, test } from 'vitest';
import { forSuite } from '../support/opened.ts';
import { startHarness } from './support.ts';

const harness = forSuite(startHarness);

/** What the page, or something that it loads, loads in turn. */
function addressesIn(text: string): readonly string[] {
  return [...text.matchAll(/(?:src|href)="([^"]+)"|url\(["']?([^"')]+)/g)].map(
    ([, attribute, style]) => attribute ?? style ?? '',
  );
}

describe('/docs', () => {
  test.each(['/docs', '/docs/'])('%s loads everything from here', async (address) => {
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

  test('is where the bare address leads, under whatever path a proxy puts it', async () => {
    const { statusCode, headers } = await harness.server.inject('/');
    const location = String(headers.location);

    expect(statusCode).toBe(302);
    expect(new URL(location, 'http://here/').pathname).toBe('/docs');
    expect(new URL(location, 'http://here/offhook/').pathname).toBe('/offhook/docs');
  });

  test('may load nothing from elsewhere, and be framed by no page', async () => {
    const { headers } = await harness.server.inject('/docs');
    const policy = String(headers['content-security-policy']);

    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toMatch(/https?:|unsafe|\*/);
    expect(headers['x-content-type-options']).toBe('nosniff');
  });

  test('describes the same API, at the address that the page came from', async () => {
    const document = (await harness.server.inject('/openapi.json')).json();
    const described = (await harness.server.inject('/docs/json')).json();

    // Patterns that the page would read otherwise are left out of it.
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

  test('has the headers of the page on no other answer', async () => {
    const { headers } = await harness.server.inject('/openapi.json');

    expect(headers['content-security-policy']).toBeUndefined();
  });

  test.each(['..%2f..%2fpackage.json', '%2e%2e/package.json', '....//package.json', '%00', 'none'])(
    'gives out no other file: %s',
    async (path) => {
      const answer = await harness.server.inject(`/docs/static/${path}`);

      expect([400, 404]).toContain(answer.statusCode);
      expect(answer.headers['content-type']).toContain('application/problem+json');
    },
  );
});
