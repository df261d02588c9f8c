import { beforeEach, describe, expect, test } from 'vitest';
import { DatabaseWatch } from '../../src/servers/database-watch.ts';
import { nodeRow } from './facts.ts';

const backlog = { waitingCalls: 1, oldestWaitingCallMs: 2, owingCalls: 3, notificationsLateMs: 4 };

let nowMs: number;
let probes: { resolve(): void; reject(error: Error): void }[];
let asked: string[];
let failing: Error | undefined;
let watch: DatabaseWatch;

beforeEach(() => {
  nowMs = 0;
  probes = [];
  asked = [];
  failing = undefined;
  const answer = async <Value>(name: string, value: Value): Promise<Value> => {
    asked.push(name);
    if (failing !== undefined) throw failing;
    return value;
  };
  watch = new DatabaseWatch({
    checkWritable: () => new Promise((resolve, reject) => probes.push({ resolve, reject })),
    isReadOnly: (error) => (error as Error).message === 'read-only',
    backlog: () => answer('backlog', backlog),
    nodes: () => answer('nodes', [nodeRow('a')]),
    size: () => answer('size', 1_000),
    nowMs: () => nowMs,
  });
});

/** Watches once while the probe takes `tookMs`, and succeeds or fails. */
async function watchOnce(tookMs: number, failure?: Error): Promise<void> {
  const watching = watch.watch();
  nowMs += tookMs;
  const probe = probes.pop();
  if (failure === undefined) probe?.resolve();
  else probe?.reject(failure);
  await watching;
}

describe('the condition', () => {
  test('is unknown before the first probe, and then says how it went', async () => {
    expect(watch.condition).toBe('unknown');
    await watchOnce(20);
    expect([watch.condition, watch.roundTripMs]).toEqual(['up', 20]);
    await watchOnce(700);
    expect([watch.condition, watch.roundTripMs]).toEqual(['slow', 700]);
    await watchOnce(10, new Error('connection refused'));
    expect([watch.condition, watch.roundTripMs]).toEqual(['away', undefined]);
    await watchOnce(10, new Error('read-only'));
    expect([watch.condition, watch.roundTripMs]).toEqual(['read-only', undefined]);
    await watchOnce(20);
    expect([watch.condition, watch.roundTripMs]).toEqual(['up', 20]);
  });

  test('is away while a probe hangs, without a second probe', async () => {
    await watchOnce(20);
    const first = watch.probe();
    nowMs += 899;
    expect(watch.condition).toBe('up');
    nowMs += 1;
    expect([watch.condition, watch.roundTripMs]).toEqual(['away', undefined]);
    const second = watch.probe();
    expect(probes).toHaveLength(1);

    probes.pop()?.resolve();
    await Promise.all([first, second]);
    expect(watch.condition).toBe('slow');
  });

  test('a failed probe rejects with the reason', async () => {
    const probing = watch.probe();
    probes.pop()?.reject(new Error('connection refused'));

    await expect(probing).rejects.toThrow('connection refused');
  });
});

describe('the readings', () => {
  test('are taken every 15 s, the size every minute, however often anybody asks', async () => {
    for (let second = 0; second < 60; second += 1) {
      nowMs = second * 1_000;
      await watchOnce(1);
      expect(watch.readings).toMatchObject({ backlog, databaseBytes: 1_000 });
    }

    expect(asked.filter((name) => name === 'backlog')).toHaveLength(4);
    expect(asked.filter((name) => name === 'nodes')).toHaveLength(4);
    expect(asked.filter((name) => name === 'size')).toHaveLength(1);
  });

  test('are unknown while the database is away, and nothing asks for them', async () => {
    await watchOnce(1);
    const count = asked.length;
    for (let attempt = 0; attempt < 5; attempt += 1) {
      nowMs += 20_000;
      await watchOnce(1, new Error('connection refused'));
      expect(watch.readings).toBeUndefined();
    }

    expect(asked).toHaveLength(count);
    expect(watch.knownNodes).toHaveLength(1);
    await watchOnce(1);
    expect(watch.readings).toMatchObject({ backlog });
  });

  test('are unknown while a probe hangs', async () => {
    await watchOnce(1);
    const hanging = watch.probe();
    nowMs += 5_000;

    expect(watch.readings).toBeUndefined();
    probes.pop()?.resolve();
    await hanging;
  });

  test('are unknown after one that failed', async () => {
    await watchOnce(1);
    nowMs += 20_000;
    failing = new Error('statement timeout');

    await expect(watchOnce(1)).rejects.toThrow('statement timeout');
    expect(watch.readings).toBeUndefined();
    expect(watch.condition).toBe('up');
  });
});
