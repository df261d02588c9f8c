// npm run amd:score -- MANIFEST [--summary FILE] [--compare FILE] [--plot FILE] [--timer NAME=MS]
// [--threshold-word-count N]

import { runScore } from './run-score.ts';

// `npm run amd:score -- … | head` closes the pipe early. That is not a failure.
process.stdout.on('error', () => process.exit(0));
try {
  await runScore(process.argv.slice(2), console.log);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
