import { expect, test } from 'vitest';
import { callOutcomes, interactionStatuses } from '../../src/calls/contract/call-words.ts';

test('calls are filtered by every status and outcome that they may have', async () => {
  const page = new URL('../../src/console/page/words.js', import.meta.url).href;
  const { filters } = (await import(page)) as { readonly filters: unknown };

  expect(filters).toEqual({
    status: [...interactionStatuses],
    outcome: [...callOutcomes],
  });
});
