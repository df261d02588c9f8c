import { describe, expect, test } from 'vitest';
import { forEachTest } from '../support/opened.ts';
import { app, dial, minimal, type ProblemDocument, startHarness } from './support.ts';

const limits = { allowedPrefixes: ['49'], callsAtOnce: 3 };

describe('a dial-out request of an app with limits', () => {
  const harness = forEachTest(() =>
    startHarness({
      apps: { find: async () => app({ limits }), findByApiKey: async () => undefined },
    }),
  );

  test('is passed to the intake with the limits', async () => {
    await dial(harness, minimal);

    expect(harness.submissions).toMatchObject([{ appId: 'app-1', limits }]);
  });

  test('to a forbidden number is a 403 that names the target', async () => {
    harness.result = { kind: 'target-forbidden' };
    const response = await dial(harness, minimal);

    expect(response.statusCode).toBe(403);
    const problem = response.json<ProblemDocument>();
    expect(problem.type).toBe('urn:offhook:problem:forbidden');
    expect(problem.errors?.map(({ path }) => path)).toEqual(['target']);
  });

  test.each([
    ['tel:+4930123456', 'tel:+12025550105', ['bridge.to']],
    ['tel:+12025550100', 'sip:+4930123456@pbx.example', ['target']],
    ['tel:+12025550100', 'sip:agents@pbx.example', ['target', 'bridge.to']],
  ])('to %s with a bridge to %s names the forbidden members', async (target, to, named) => {
    harness.result = { kind: 'target-forbidden' };
    const bridge = { to, on: 'answered' };
    const response = await dial(harness, { ...minimal, target, bridge });

    expect(response.statusCode).toBe(403);
    const problem = response.json<ProblemDocument>();
    expect(problem.errors?.map(({ path }) => path)).toEqual(named);
  });

  test.each(['callsAtOnce', 'callsPerDay'] as const)(
    'beyond the limit %s is a 429 with Retry-After',
    async (limit) => {
      harness.result = { kind: 'limit-reached', limit, retryAfterS: 4_711 };
      const response = await dial(harness, minimal);

      expect(response.statusCode).toBe(429);
      expect(response.headers['retry-after']).toBe('4711');
    },
  );
});
