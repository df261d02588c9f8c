import { describe, expect, test } from 'vitest';
import { orderGateways } from '../../src/sip/trunks/gateway-order.ts';
import { seeded } from './seeded-dice.ts';

const gateway = (name: string, priority: number, weight: number) => ({ name, priority, weight });
const up = () => true;

const names = (gateways: readonly { readonly name: string }[]) => gateways.map(({ name }) => name);

describe("the order of a trunk's gateways", () => {
  test('puts lower priorities first, whatever their weight and position', () => {
    const gateways = [gateway('c', 30, 100), gateway('a', 10, 1), gateway('b', 20, 50)];

    expect(names(orderGateways(gateways, up, seeded(1)))).toEqual(['a', 'b', 'c']);
  });

  test('shares the first place within a priority by weight', () => {
    const gateways = [gateway('a', 1, 60), gateway('b', 1, 30), gateway('c', 1, 10)];
    const dice = seeded(20_261_120);
    const first = new Map<string, number>();

    const draws = 10_000;
    for (let draw = 0; draw < draws; draw += 1) {
      const [name = ''] = names(orderGateways(gateways, up, dice));
      first.set(name, (first.get(name) ?? 0) + 1);
    }

    // In 10,000 draws, three standard deviations of a share of 60 % are 1.5 %.
    expect(Math.abs((first.get('a') ?? 0) / draws - 0.6)).toBeLessThan(0.015);
    expect(Math.abs((first.get('b') ?? 0) / draws - 0.3)).toBeLessThan(0.015);
    expect(Math.abs((first.get('c') ?? 0) / draws - 0.1)).toBeLessThan(0.015);
  });

  test('contains each gateway exactly once', () => {
    const gateways = [
      gateway('a', 1, 0),
      gateway('b', 1, 5),
      gateway('c', 1, 0),
      gateway('d', 2, 0),
    ];
    const dice = seeded(7);

    for (let draw = 0; draw < 200; draw += 1) {
      expect(names(orderGateways(gateways, up, dice)).toSorted()).toEqual(['a', 'b', 'c', 'd']);
    }
  });

  test('puts a weight of 0 after the others of its priority, and before the next priority', () => {
    const gateways = [gateway('last', 2, 100), gateway('spare', 1, 0), gateway('main', 1, 1)];
    const dice = seeded(3);

    for (let draw = 0; draw < 200; draw += 1) {
      expect(names(orderGateways(gateways, up, dice))).toEqual(['main', 'spare', 'last']);
    }
  });

  test('shares equally if all weights are 0', () => {
    const gateways = [gateway('a', 1, 0), gateway('b', 1, 0)];
    const dice = seeded(5);
    const draws = Array.from({ length: 1_000 }, () => names(orderGateways(gateways, up, dice))[0]);

    expect(draws.filter((name) => name === 'a').length).toBeGreaterThan(400);
    expect(draws.filter((name) => name === 'b').length).toBeGreaterThan(400);
  });

  test('puts gateways that are down last, in the same order among themselves', () => {
    const gateways = [gateway('a', 1, 1), gateway('b', 2, 1), gateway('c', 3, 1)];
    const isUp = ({ name }: { readonly name: string }) => name === 'c';

    expect(names(orderGateways(gateways, isUp, seeded(1)))).toEqual(['c', 'a', 'b']);
    expect(names(orderGateways(gateways, () => false, seeded(1)))).toEqual(['a', 'b', 'c']);
  });

  test('draws the last gateway for the largest random number', () => {
    const gateways = [gateway('a', 1, 1), gateway('b', 1, 1)];

    expect(names(orderGateways(gateways, up, () => 1 - 2 ** -32))).toEqual(['b', 'a']);
  });
});
