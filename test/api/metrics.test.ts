import { describe, expect, test } from 'vitest';
import { createMetrics } from '../../src/http/metrics.ts';

describe('the metrics of calls that ended', () => {
  test('say who is at fault, and `none` where nobody is', async () => {
    const metrics = createMetrics();
    metrics.callEnded({ outcome: 'completed' });
    metrics.callEnded({ outcome: 'busy', sipStatus: 486 });
    metrics.callEnded({ outcome: 'rejected', sipStatus: 403 });
    metrics.callEnded({ outcome: 'rejected', sipStatus: 407 });
    metrics.callEnded({ outcome: 'rejected', sipStatus: 407 });

    const lines = (await metrics.render()).split('\n');
    expect(lines.filter((line) => line.startsWith('offhook_calls_ended_total{'))).toEqual([
      'offhook_calls_ended_total{outcome="completed",fault="none"} 1',
      'offhook_calls_ended_total{outcome="busy",fault="callee"} 1',
      'offhook_calls_ended_total{outcome="rejected",fault="carrier"} 1',
      'offhook_calls_ended_total{outcome="rejected",fault="gateway"} 2',
    ]);
  });
});
