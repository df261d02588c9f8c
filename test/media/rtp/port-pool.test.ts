import { describe, expect, test } from 'vitest';
import { PortPool } from '../../../src/media/rtp/port-pool.ts';

describe('port pool', () => {
  const range = { portMin: 20_001, portMax: 20_013, drainMs: 5_000 };

  function takeAll(pool: PortPool, nowMs: number): number[] {
    const ports: number[] = [];
    for (let port = pool.take(nowMs); port !== undefined; port = pool.take(nowMs)) ports.push(port);
    return ports;
  }

  test('gives even ports whose odd neighbour is in the range', () => {
    const pool = new PortPool({ ...range, workerIndex: 0, workerCount: 1 });

    expect(takeAll(pool, 0)).toEqual([20_002, 20_004, 20_006, 20_008, 20_010, 20_012]);
    expect(pool.take(0)).toBeUndefined();
  });

  test('divides the range between workers without overlap', () => {
    const shares = [0, 1, 2, 3].map((workerIndex) =>
      takeAll(new PortPool({ ...range, workerIndex, workerCount: 4 }), 0),
    );

    expect(shares).toEqual([[20_002, 20_010], [20_004, 20_012], [20_006], [20_008]]);
  });

  test('lets a returned port rest, and uses the port that rested longest first', () => {
    const pool = new PortPool({ ...range, workerIndex: 0, workerCount: 3 });
    expect(takeAll(pool, 0)).toEqual([20_002, 20_008]);
    pool.release(20_008, 1_000);
    pool.release(20_002, 2_000);

    expect(takeAll(pool, 5_999)).toEqual([]);
    expect(takeAll(pool, 6_000)).toEqual([20_008]);
    expect(takeAll(pool, 7_000)).toEqual([20_002]);
  });

  test('continues after the ports of a worker that died', () => {
    const pool = new PortPool({ ...range, workerIndex: 0, workerCount: 1, startAfterPort: 20_006 });

    expect(takeAll(pool, 0)).toEqual([20_008, 20_010, 20_012, 20_002, 20_004, 20_006]);
  });
});
