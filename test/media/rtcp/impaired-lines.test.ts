// How a call sounded, beside what an impaired network really did to its packets. Real sockets and a
// real media worker; the phone on the other side counts for itself.

import { beforeAll, describe, expect, test } from 'vitest';
import { freePortRange } from '../../support/free-port.ts';
import {
  callOver,
  type ImpairedCall,
  impairedLines,
  type LineName,
} from '../../support/impaired-lines.ts';
import { createScripted } from '../support/gateway.ts';

/** 8 s, so that the gateway has reported at least once, and the phone has answered that report. */
const packets = 400;
/** While the worker only listens, it reads its sockets every 20 ms. */
const readEveryMs = 20;
/** What a loaded machine may add to a delay while the packet is in neither side's hands. */
const machineMs = 60;

const names = Object.keys(impairedLines) as LineName[];
const calls = new Map<LineName, ImpairedCall>();

beforeAll(async () => {
  await using ports = await freePortRange(40);
  await using media = createScripted({ ...ports });
  await media.ready();
  await Promise.all(
    names.map(async (name) => calls.set(name, await callOver(media, name, packets))),
  );
});

const rounded = (value: number, digits: number): number => Number(value.toFixed(digits));

describe.each(names)('%s', (name) => {
  const call = (): ImpairedCall => calls.get(name) as ImpairedCall;

  test('loses as much as the quality says', () => {
    const { quality, real } = call();
    expect(quality?.lossPercent).toBe(rounded(real.lossPercent, 2));
  });

  test('is as irregular as the quality says', () => {
    const { quality, real } = call();
    const difference = Math.abs((quality?.jitterMs ?? Number.NaN) - real.jitterMs);
    expect(difference).toBeLessThan(readEveryMs / 2 + 2);
  });

  test('is as long as the quality says', () => {
    const { quality, real } = call();
    expect(quality?.roundTripMs).toBeGreaterThanOrEqual(real.delayMs - readEveryMs / 2);
    expect(quality?.roundTripMs).toBeLessThan(real.delayMs + readEveryMs / 2 + machineMs);
  });

  test('loses as much of ours as the phone says', () => {
    const { quality, real } = call();
    expect(quality?.remote).toEqual({
      lossPercent: rounded(real.remote.lossPercent, 2),
      jitterMs: rounded(real.remote.jitterMs, 1),
    });
  });
});

test('the worse the line, the lower the score', () => {
  const mos = (name: LineName): number => calls.get(name)?.quality?.mos ?? Number.NaN;
  expect(mos('a good line')).toBeGreaterThan(4.3);
  expect(mos('random loss')).toBeLessThan(mos('a good line'));
  expect(mos('loss in bursts')).toBeLessThan(mos('random loss'));
});
