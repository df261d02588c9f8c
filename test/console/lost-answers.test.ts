// What the page makes of an answer that does not arrive, or not all of it: no phone is called twice. In Chromium: lost-connections.ts.

import { afterEach, beforeEach, describe, expect, test } from 'vitest';

type Page = {
  readonly ask: (path: string, options?: object) => Promise<unknown>;
  readonly api: { readonly dial: (request: object) => Promise<{ readonly callId: string }> };
};

const realFetch = globalThis.fetch;
/** What comes next, and the last one again and again. */
let answers: readonly (() => Response)[] = [];
let keys: (string | undefined)[] = [];

const lost = (): Response => {
  throw new TypeError('Failed to fetch');
};
/** Status and headers, half of the text, and nothing more. */
const torn = (status: number) => (): Response => {
  const text = new TextEncoder().encode('{"callId":');
  const body = new ReadableStream({
    start: (controller) => controller.enqueue(text),
    pull: (controller) => controller.error(new TypeError('network error')),
  });
  return new Response(body, { status });
};
const placed = (callId: string) => (): Response => Response.json({ callId });
const refused = (status: number) => (): Response =>
  Response.json({ detail: 'Not like that.' }, { status });

let page: Page;
beforeEach(async () => {
  page = (await import(new URL('../../src/console/page/api.js', import.meta.url).href)) as Page;
  keys = [];
  globalThis.fetch = async (_path, options) => {
    keys.push(new Headers(options?.headers).get('idempotency-key') ?? undefined);
    const [answer = lost, ...rest] = answers;
    if (rest.length > 0) answers = rest;
    return answer();
  };
});
afterEach(() => {
  globalThis.fetch = realFetch;
});

async function dial(target: string, answer: () => Response): Promise<string> {
  answers = [answer];
  const { callId } = await page.api.dial({ botId: 'dev-bot', target });
  return callId;
}

describe('an answer of which only the beginning came', () => {
  test('is none', async () => {
    answers = [torn(200)];
    await expect(page.ask('x')).rejects.toThrow(
      'The gateway is not reached. The page tries again.',
    );
    await expect(page.ask('x', { method: 'POST', body: {} })).rejects.toThrow(
      'The gateway is not reached. Whether this was done is not known.',
    );
  });

  test('is a refusal where it began as one', async () => {
    answers = [torn(503)];
    await expect(page.ask('x')).rejects.toMatchObject({
      ...{ status: 503, message: 'The gateway answered 503.', errors: [] },
    });
  });
});

describe('a call', () => {
  test('has one key until it is known to be placed, whatever is tried meanwhile', async () => {
    await expect(dial('tel:+1', torn(200))).rejects.toThrow('not reached');
    await expect(dial('tel:+1', lost)).rejects.toThrow('not reached');
    expect(await dial('tel:+2', placed('call-2'))).toBe('call-2');
    // A proxy gave up; what it was sent before may have arrived.
    await expect(dial('tel:+1', refused(502))).rejects.toThrow('Not like that.');
    await expect(dial('tel:+1', refused(429))).rejects.toThrow('Not like that.');
    expect(await dial('tel:+1', placed('call-1'))).toBe('call-1');

    const [first, again, other, ...more] = keys;
    expect(first).toMatch(/^console-[0-9a-f]{32}$/);
    expect([again, ...more]).toEqual(Array(4).fill(first));
    expect(other).not.toBe(first);
  });

  test('that is meant a second time has another key', async () => {
    await dial('tel:+3', placed('call-3'));
    await dial('tel:+3', placed('call-4'));
    expect(keys[0]).not.toBe(keys[1]);
  });

  test('is forgotten where very many others were lost after it', async () => {
    await expect(dial('tel:+4', lost)).rejects.toThrow();
    await expect(dial('tel:+5', lost)).rejects.toThrow();
    for (let other = 0; other < 99; other += 1)
      await expect(dial(`tel:+6${other}`, lost)).rejects.toThrow();
    await expect(dial('tel:+5', lost)).rejects.toThrow();
    await expect(dial('tel:+4', lost)).rejects.toThrow();

    expect(keys.at(-2)).toBe(keys[1]);
    expect(keys.at(-1)).not.toBe(keys[0]);
  });
});
