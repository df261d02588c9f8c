// `npm run test:s3` stores recordings on OpenStack Swift, an S3 server that calculates the
// signatures of version 4. It is not part of `npm test`, because Debian's Swift brings 70 packages.

import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: { include: ['test/release/s3/*.trial.ts'], testTimeout: 120_000, hookTimeout: 120_000 },
});
