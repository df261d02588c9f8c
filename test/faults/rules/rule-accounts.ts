// The accounts of the rules storm, with the rules that each has: as the document that is stored,
// and as the plain numbers that the oracle reads.

import type { RuleSetDocument } from '../../../src/rules/rule-set.ts';
import type { Random } from '../random.ts';
import { offsets, type PlainRules, type PlainWindow } from './rules-oracle.ts';

export type RuleVersion = { readonly document: RuleSetDocument; readonly plain: PlainRules };

export type StormAccount = {
  readonly accountId: string;
  /** The share of all calls. */
  readonly share: number;
  /** The name of a rule set, and what each of its versions says. The versions take turns. */
  readonly sets: Readonly<Record<string, (now: number, turn: number) => RuleVersion>>;
  /** The share of its requests that name `loose`. */
  readonly loose?: number;
};

const attempts = (most: number, within: string, otherwise: 'wait' | 'fail') => ({
  attempts: [{ most, within, otherwise }],
});

/** Short periods, so that one storm sees many of them pass. */
export const accounts: readonly [StormAccount, ...StormAccount[]] = [
  { accountId: 'suppresses', share: 0.2, sets: {} },
  {
    accountId: 'ends',
    share: 0.2,
    sets: {
      default: () => ({
        document: { ...attempts(2, '20s', 'fail'), rest: { afterAnswered: '15s' } },
        plain: { attempts: { most: 2, withinMs: 20_000 }, afterAnsweredMs: 15_000 },
      }),
    },
  },
  {
    accountId: 'waits',
    share: 0.1,
    sets: {
      default: () => ({
        document: {
          ...attempts(3, '30s', 'wait'),
          rest: { afterAnswered: '10s', otherwise: 'wait' },
        },
        plain: { attempts: { most: 3, withinMs: 30_000 }, afterAnsweredMs: 10_000 },
      }),
    },
  },
  {
    accountId: 'sleeps',
    share: 0.2,
    sets: { default: (now, turn) => hoursOf(now, turn, turn % 4 < 2 ? 'fail' : 'wait') },
  },
  {
    accountId: 'changes',
    share: 0.2,
    loose: 0.3,
    sets: {
      // Both versions forbid a sixth attempt in 25 s, and one of them a second.
      default: (_now, turn) => strict(turn % 2 === 0 ? 1 : 5),
      loose: () => strict(8),
    },
  },
  { accountId: 'free', share: 0.1, sets: {} },
];

function strict(most: number): RuleVersion {
  return {
    document: attempts(most, '25s', 'fail'),
    plain: { attempts: { most, withinMs: 25_000 } },
  };
}

/** Opens the hours of every other zone. The first of them closes at the end of the minute. */
function hoursOf(now: number, turn: number, otherwise: 'wait' | 'fail'): RuleVersion {
  const windows = Object.values(offsets)
    .filter((_offset, index) => index % 2 === turn % 2)
    .map((offset, index): PlainWindow => {
      const minute = (((Math.floor(now / 60_000) + offset) % 1_440) + 1_440) % 1_440;
      return {
        from: Math.max(0, minute - 10),
        until: Math.min(1_440, minute + (index === 0 ? 1 : 20)),
      };
    });
  return {
    document: {
      hours: {
        otherwise,
        windows: windows.map(({ from, until }) => ({
          ...{ days: 'mon-sun', from: clockTime(from), until: clockTime(until) },
        })),
      },
    },
    plain: { hours: windows },
  };
}

export function clockTime(minute: number): string {
  return [Math.floor(minute / 60), minute % 60]
    .map((part) => String(part).padStart(2, '0'))
    .join(':');
}

export function anyAccount(random: Random): StormAccount {
  let left = random.next();
  for (const account of accounts) {
    left -= account.share;
    if (left < 0) return account;
  }
  return accounts[0];
}

/**
 * Half of the calls go to few numbers, which several processes then call at once. The others go to
 * so many that most of them are called for the first time.
 */
export function anyNumber(random: Random): string {
  const prefix = random.pick(Object.keys(offsets) as [string, ...string[]]);
  const numbers = random.next() < 0.5 ? 40 : 40_000;
  return `${prefix}${String(random.between(0, numbers)).padStart(7, '0')}`;
}
