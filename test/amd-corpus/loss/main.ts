// npm run amd:loss -- MANIFEST… [--loss 0,2,5,10] [--burst 1] [--seeds 10]
// Measures how lost packets affect detection, and whether it should hear them concealed.

import { parseArgs } from 'node:util';
import { compareEars, type LossOptions } from './compare-ears.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    loss: { type: 'string', default: '0,2,5,10' },
    burst: { type: 'string', default: '1' },
    seeds: { type: 'string', default: '10' },
  },
});
const options: LossOptions = {
  manifests: positionals,
  burst: Number(values.burst),
  seeds: Number(values.seeds),
};
for (const lossPercent of values.loss.split(',').map(Number)) {
  for (const line of await compareEars(options, lossPercent)) console.log(line);
}
