// The accounts of the storm with real gateways that have calling rules. Their rule sets pass the
// checks of the HTTP interface, which permits no period below a minute.

import type { Random } from '../random.ts';
import { clockTime, type RuleVersion, type StormAccount } from './rule-accounts.ts';
import type { PlainWindow } from './rules-oracle.ts';

type Share = Pick<StormAccount, 'accountId' | 'sets' | 'loose'>;

/** Zones without summer time, and the minutes that their clocks are ahead of UTC. */
const zones = [
  ['Asia/Tokyo', 9 * 60],
  ['Asia/Kathmandu', 5 * 60 + 45],
  ['America/Phoenix', -7 * 60],
] as const;
const dayMinutes = 24 * 60;

export const stormAccounts: readonly [Share, ...Share[]] = [
  { accountId: 'suppresses', sets: {} },
  { accountId: 'ends', sets: { default: () => attempts(2, 'fail') } },
  { accountId: 'waits', sets: { default: () => attempts(1, 'wait') } },
  {
    accountId: 'sleeps',
    sets: { default: (now, turn) => hoursOf(now, turn, turn % 4 < 2 ? 'wait' : 'fail') },
  },
  {
    accountId: 'changes',
    loose: 0.3,
    sets: {
      // Both versions forbid a fourth attempt in a minute, and one of them a second.
      default: (_now, turn) => attempts(turn % 2 === 0 ? 1 : 3, 'fail'),
      loose: () => attempts(6, 'fail'),
    },
  },
];

function attempts(most: number, otherwise: 'wait' | 'fail'): RuleVersion {
  return {
    document: { attempts: [{ most, within: '1m', otherwise }] },
    plain: { attempts: { most, withinMs: 60_000 } },
  };
}

/** In every other turn, the hours are open until the end of the minute. In the others, never. */
function hoursOf(now: number, turn: number, otherwise: 'wait' | 'fail'): RuleVersion {
  const [zone, offset] = zones[turn % zones.length] ?? zones[0];
  const minute = (((Math.floor(now / 60_000) + offset) % dayMinutes) + dayMinutes) % dayMinutes;
  const from = turn % 2 === 0 ? minute : (minute + 60) % (dayMinutes - 1);
  const window: PlainWindow = { from, until: from + 1 };
  return {
    document: {
      hours: {
        ...{ zones: zone, otherwise },
        windows: [
          { days: 'mon-sun', from: clockTime(window.from), until: clockTime(window.until) },
        ],
      },
    },
    plain: { hours: [window], offset },
  };
}

export function anyStormAccount(random: Random): Share {
  return random.pick(stormAccounts);
}
