// npm run test:kits: starts every receiver of src/notifier/kits and requires a perfect score.

import { nodeKits, otherKits, scoreKit } from './kits.ts';

let failures = 0;
for (const kit of [...nodeKits, ...otherKits]) {
  const startedAt = performance.now();
  const { score, code, out, err } = await scoreKit(kit);
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1);
  console.log(`${kit.file.padEnd(14)} score ${score ?? 'none'}  (${seconds} s)`);
  if (code === 0) continue;
  failures += 1;
  console.log(`${out}${err}`);
}
process.exitCode = failures === 0 ? 0 : 1;
