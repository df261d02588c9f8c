// The receivers that run on Node. `npm run test:kits` also runs those in other languages.

import { describe, expect, test } from 'vitest';
import { nodeKits, scoreKit } from './kits.ts';

describe('the example receiver', () => {
  test.each(nodeKits.map((kit) => [kit.file, kit] as const))(
    '%s passes every check',
    async (_file, kit) => {
      const { score, out } = await scoreKit(kit);

      expect(score, out).toBe(100);
    },
  );
});
