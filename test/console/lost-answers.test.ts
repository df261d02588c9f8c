// The page's code when an answer does not arrive, or only in part: no phone is called twice.
// test/console/lost-connections.ts tests this in Chromium.

import { afterEach, beforeEach, describe, expect, test } from 'vitest';

type Page = {
  readonly ask: (path: string, options?: object) => Promise<unknown>;
  readonly api: {
    readonly dial: (
      request: object,
      form?: object,
      isGone?: () => boolean,
    ) => Promise<{ readonly callId: string }>;
  };
};
type Attempts = {
  readonly unansweredBefore: (request: object, form: object) => readonly object[];
  readonly settle: (requests: readonly object[]) => void;
};

const realFetch = globalThis.fetch;
/** The next answers. The last one is repeated. */
let answers: readonly (() => Response)[] = [];
let keys: (string | undefined)[] = [];

const lost = (): Response => {
  throw new TypeError('Failed to fetch');
};
/** An answer that ends after its status, headers and half of its text. */
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
const problem = (status: number, kind: string) => (): Response =>
  Response.json({ type: `urn:offhook:problem:${kind}`, detail: 'Not now.' }, { status });

let page: Page;
let attempts: Attempts;
const load = async (module: string): Promise<unknown> =>
  await import(new URL(`../../src/console/page/${module}`, import.meta.url).href);
beforeEach(async () => {
  page = (await load('api.js')) as Page;
  attempts = (await load('dial-attempts.js')) as Attempts;
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

const requestTo = (target: string, caller = '1') => ({ botId: 'dev-bot', target, caller });

async function dial(target: string, answer: () => Response, form?: object): Promise<string> {
  answers = [answer];
  const { callId } = await page.api.dial(requestTo(target), form);
  return callId;
}

describe('an answer that arrives only in part', () => {
  test('does not count as an answer', async () => {
    answers = [torn(200)];
    await expect(page.ask('x')).rejects.toThrow(
      'The gateway cannot be reached. The page tries again.',
    );
    await expect(page.ask('x', { method: 'POST', body: {} })).rejects.toThrow(
      'The gateway cannot be reached. It is not known whether this was done.',
    );
  });

  test('counts as a refusal if its status is one', async () => {
    answers = [torn(503)];
    await expect(page.ask('x')).rejects.toMatchObject({
      ...{ status: 503, message: 'The gateway responded with 503.', errors: [] },
    });
  });
});

describe('a call', () => {
  test('keeps its key until it is known to be placed, whatever else is tried', async () => {
    await expect(dial('tel:+1', torn(200))).rejects.toThrow('cannot be reached');
    await expect(dial('tel:+1', lost)).rejects.toThrow('cannot be reached');
    expect(await dial('tel:+2', placed('call-2'))).toBe('call-2');
    // A proxy gave up. The request may have arrived earlier.
    await expect(dial('tel:+1', refused(502))).rejects.toThrow('Not like that.');
    await expect(dial('tel:+1', refused(429))).rejects.toThrow('Not like that.');
    expect(await dial('tel:+1', placed('call-1'))).toBe('call-1');

    const [first, again, other, ...more] = keys;
    expect(first).toMatch(/^console-[0-9a-f]{32}$/);
    expect([again, ...more]).toEqual(Array(4).fill(first));
    expect(other).not.toBe(first);
  });

  test('that is placed a second time on purpose has another key', async () => {
    await dial('tel:+3', placed('call-3'));
    await dial('tel:+3', placed('call-4'));
    expect(keys[0]).not.toBe(keys[1]);
  });

  test('is forgotten after very many other answers were lost', async () => {
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

describe('a call whose answer was lost', () => {
  const [form, later] = [{}, {}];

  test.each([
    ['no answer', lost],
    ['half an answer', torn(200)],
    ['an answer of a proxy', refused(504)],
    ['an answer that says so', problem(503, 'acceptance-unknown')],
  ])('causes a question before any other call of its form (%s)', async (name, answer) => {
    const target = `tel:${name}`;
    await expect(dial(target, answer, form)).rejects.toThrow();

    const [mine] = attempts.unansweredBefore(requestTo('tel:+70'), form);
    expect(mine).toEqual(requestTo(target));
    expect(attempts.unansweredBefore(requestTo('tel:+70'), later)).toEqual([]);
    expect(attempts.unansweredBefore(requestTo(target), form), 'a retry').toEqual([]);
    // The same phone would ring twice, whichever form sends the request.
    expect(attempts.unansweredBefore(requestTo(target, '2'), later)).toEqual([mine]);
    await dial(target, placed('call-7'), later);
    expect(attempts.unansweredBefore(requestTo(target, '2'), form)).toEqual([]);
  });

  test.each([
    ['a bad request', refused(400)],
    ['too many requests', refused(429)],
    ['a gateway that accepts nothing', problem(503, 'unavailable')],
  ])('causes no question if the gateway refused it: %s', async (name, answer) => {
    const target = `tel:${name}`;
    await expect(dial(target, answer, form)).rejects.toThrow();
    expect(attempts.unansweredBefore(requestTo(target, '2'), form)).toEqual([]);
  });

  test('still causes a question after a later attempt is refused', async () => {
    await expect(dial('tel:+80', lost, form)).rejects.toThrow();
    await expect(dial('tel:+80', refused(429), form)).rejects.toThrow();
    expect(attempts.unansweredBefore(requestTo('tel:+80', '2'), later)).toEqual([
      requestTo('tel:+80'),
    ]);
  });

  test('causes no further question, and keeps its key, after the user placed another call', async () => {
    await expect(dial('tel:+90', lost, form)).rejects.toThrow();
    attempts.settle(attempts.unansweredBefore(requestTo('tel:+90', '2'), form));
    expect(attempts.unansweredBefore(requestTo('tel:+90', '3'), form)).toEqual([]);
    await dial('tel:+90', placed('call-9'), form);
    expect(keys[1]).toBe(keys[0]);
  });
});

describe('a form that is cancelled before its answer comes', () => {
  const [form, later] = [{}, {}];
  const answerLater = () => {
    let answer = (_response: Response): void => undefined;
    const answered = new Promise<Response>((resolve) => {
      answer = resolve;
    });
    globalThis.fetch = async (_path, options) => {
      keys.push(new Headers(options?.headers).get('idempotency-key') ?? undefined);
      return (await answered).clone();
    };
    return answer;
  };

  test('may have called the phone, before and after its answer', async () => {
    const answer = answerLater();
    const request = requestTo('tel:+95');
    const dialled = page.api.dial(request, form, () => true);
    expect(attempts.unansweredBefore(requestTo('tel:+95', '2'), later)).toEqual([request]);
    expect(attempts.unansweredBefore(request, later), 'the same call').toEqual([]);

    answer(placed('call-95')());
    await dialled;
    // The user has not seen the call.
    expect(attempts.unansweredBefore(requestTo('tel:+95', '2'), later)).toEqual([request]);
    await page.api.dial(request, later);
    expect(keys[1]).toBe(keys[0]);
    expect(attempts.unansweredBefore(requestTo('tel:+95', '2'), later)).toEqual([]);
  });

  test('has called no phone if the gateway refused it', async () => {
    const answer = answerLater();
    const dialled = page.api.dial(requestTo('tel:+96'), form, () => true);
    answer(refused(400)());
    await expect(dialled).rejects.toThrow();
    expect(attempts.unansweredBefore(requestTo('tel:+96', '2'), later)).toEqual([]);
  });
});
