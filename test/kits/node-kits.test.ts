// The receivers that run on Node; `npm run test:kits` runs those in other languages as well.

import { describe, expect, test } from 'vitest';
import { nodeKits, scoreKit } from './kits.ts';

describe('a receiver to copy from', () => {
  test.each(nodeKits.map((kit) => [kit.file, kit] as const))(
    '%s passes every check',
    async (_file, kit) => {
      const { score, out } = await scoreKit(kit);

      expect(score, out).toBe(100);
    },
  );
});
