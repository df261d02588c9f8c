// Prints what the gateway says about the quality of calls beside what an impaired network really
// did to their packets. The same calls are a test (test/media/rtcp/impaired-lines.test.ts); this
// one can be longer.

import { createScripted } from '../../media/support/gateway.ts';
import { freePortRange } from '../../support/free-port.ts';
import { callOver, impairedLines, type LineName } from '../../support/impaired-lines.ts';
import { optionsOf } from './options.ts';

export async function benchQuality(args: readonly string[]): Promise<void> {
  const { seconds } = optionsOf(args, { seconds: 30 });
  await using ports = await freePortRange(40);
  await using media = createScripted({ ...ports });
  await media.ready();
  const names = Object.keys(impairedLines) as LineName[];
  const rows = await Promise.all(
    names.map(async (name) => {
      const { quality, real } = await callOver(media, name, seconds * 50);
      const { remote } = real;
      return {
        line: name,
        'loss %': `${quality?.lossPercent} (${real.lossPercent.toFixed(2)})`,
        'jitter ms': `${quality?.jitterMs} (${real.jitterMs.toFixed(1)})`,
        'round trip ms': `${quality?.roundTripMs} (${real.delayMs.toFixed(0)})`,
        'remote loss %': `${quality?.remote?.lossPercent} (${remote.lossPercent.toFixed(2)})`,
        'remote jitter ms': `${quality?.remote?.jitterMs} (${remote.jitterMs.toFixed(1)})`,
        R: quality?.rFactor,
        MOS: quality?.mos,
      };
    }),
  );
  console.log('what the gateway says, and in brackets what the network did or the phone counted');
  console.table(rows);
}
