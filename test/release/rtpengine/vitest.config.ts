// `npm run test:rtpengine` runs encrypted calls through Kamailio and rtpengine. It is not part of
// `npm test`, because Debian's rtpengine brings 90 packages (150 MB) with codecs that nothing else
// here needs.

import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: { include: ['test/release/rtpengine/*.trial.ts'], testTimeout: 120_000 },
});
