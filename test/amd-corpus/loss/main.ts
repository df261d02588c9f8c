// npm run amd:loss -- MANIFEST… [--loss 0,2,5,10] [--burst 1] [--seeds 10] [--suppression]
// Measures how lost packets affect detection, and whether it should hear them concealed. With
// `--suppression`, measures how silence suppression and comfort noise affect it.

import { parseArgs } from 'node:util';
import { compareLines, type LossOptions } from './compare-lines.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    loss: { type: 'string', default: '0,2,5,10' },
    burst: { type: 'string', default: '1' },
    seeds: { type: 'string', default: '10' },
    suppression: { type: 'boolean', default: false },
  },
});
const options: LossOptions = {
  manifests: positionals,
  burst: Number(values.burst),
  seeds: Number(values.seeds),
  suppression: values.suppression,
};
for (const lossPercent of values.loss.split(',').map(Number)) {
  for (const line of await compareLines(options, lossPercent)) console.log(line);
}
