import { describe, expect, test } from 'vitest';
import { endOfRefusal } from '../../src/calls/life/call-outcome.ts';
import { CallerBlocks } from '../../src/http/caller-blocks.ts';
import { createMetrics } from '../../src/http/metrics.ts';

const hourMs = 3_600_000;

test('calls are counted by Q.850 cause, with a bounded number of labels', async () => {
  const metrics = createMetrics();
  const ofCause = (q850: number) => ({ outcome: 'busy', facts: { cause: { q850 } } }) as const;
  for (const q850 of [17, 17, 126, 14]) metrics.callEnded(ofCause(q850), { trunk: 'carrier' });
  metrics.callEnded({ outcome: 'completed' }, { trunk: 'carrier' });

  const lines = (await metrics.render()).split('\n');
  const counted = lines.filter((line) => line.startsWith('offhook_calls_ended_by_cause_total{'));
  expect(counted.length).toBeLessThan(80);
  expect(counted.filter((line) => !line.endsWith(' 0'))).toEqual([
    'offhook_calls_ended_by_cause_total{trunk="carrier",cause="17"} 2',
    'offhook_calls_ended_by_cause_total{trunk="carrier",cause="other"} 2',
    'offhook_calls_ended_by_cause_total{trunk="carrier",cause="none"} 1',
  ]);
});

test('calls that a calling rule ended are counted by the rule', async () => {
  const metrics = createMetrics();
  const at = new Date();
  const call = { trunk: 'carrier', caller: '+12025550101' };
  metrics.callEnded(endOfRefusal({ rule: 'suppressed' }, at), call);
  metrics.callEnded(endOfRefusal({ rule: 'hours', notBefore: at }, at));
  metrics.callEnded({ outcome: 'completed' }, call);

  const lines = (await metrics.render()).split('\n');
  expect(lines.filter((line) => line.startsWith('offhook_calls_not_permitted_total{'))).toEqual([
    'offhook_calls_not_permitted_total{rule="suppressed"} 1',
    'offhook_calls_not_permitted_total{rule="hours"} 1',
    'offhook_calls_not_permitted_total{rule="attempts"} 0',
    'offhook_calls_not_permitted_total{rule="rest"} 0',
    'offhook_calls_not_permitted_total{rule="abandoned-rate"} 0',
  ]);
});

test('how calls sounded is counted for each trunk', async () => {
  const metrics = createMetrics();
  metrics.callEnded({ outcome: 'completed' }, { trunk: 'carrier', mos: 4.34 });
  metrics.callEnded({ outcome: 'completed' }, { trunk: 'carrier', mos: 2.2 });
  metrics.callEnded({ outcome: 'busy' }, { trunk: 'carrier' });

  const text = await metrics.render();
  expect(text).toContain('offhook_call_mos_bucket{le="2.5",trunk="carrier"} 1\n');
  expect(text).toContain('offhook_call_mos_count{trunk="carrier"} 2\n');
});

describe('the share of blocked calls', () => {
  test('is that of the worst caller ID on each trunk, and names no number', async () => {
    const gateways = [{ trunk: 'idle', gateway: 'sip.example', isUp: true }];
    const metrics = createMetrics({ gateways: () => gateways });
    for (let count = 0; count < 40; count += 1) {
      const outcome = count % 4 === 0 ? 'blocked' : 'completed';
      metrics.callEnded({ outcome }, { trunk: 'carrier', caller: '+12025550101' });
      metrics.callEnded({ outcome: 'busy' }, { trunk: 'carrier', caller: '+12025550102' });
      // What our own side does to a call says nothing about its caller ID.
      metrics.callEnded({ outcome: 'expired' }, { trunk: 'carrier', caller: '+12025550101' });
    }

    await metrics.render();
    const text = await metrics.render();
    expect(text.match(/^offhook_trunk_caller_blocked_ratio.*$/gm)?.sort()).toEqual([
      'offhook_trunk_caller_blocked_ratio{trunk="carrier"} 0.25',
      'offhook_trunk_caller_blocked_ratio{trunk="idle"} 0',
    ]);
    expect(text).not.toContain('555010');
  });

  test('needs 20 calls, and forgets them after an hour', () => {
    const blocks = new CallerBlocks();
    const note = (calls: number, isBlocked: boolean, at: number) => {
      for (let count = 0; count < calls; count += 1) blocks.note('a', '1', isBlocked, at);
    };
    note(19, true, 0);
    expect(blocks.worst(0)).toEqual(new Map());
    note(1, false, 0);
    expect(blocks.worst(hourMs - 1)).toEqual(new Map([['a', 0.95]]));
    expect(blocks.worst(hourMs)).toEqual(new Map());
    note(20, false, hourMs * 5);
    expect(blocks.worst(hourMs * 5)).toEqual(new Map([['a', 0]]));
  });

  test('remembers a bounded number of caller IDs', () => {
    const blocks = new CallerBlocks();
    const block = (caller: string) => {
      for (let count = 0; count < 20; count += 1) blocks.note('a', caller, true, 0);
    };
    block('first');
    for (let caller = 0; caller < 10_000; caller += 1) blocks.note('a', String(caller), false, 0);
    expect(blocks.worst(0)).toEqual(new Map());
  });
});
