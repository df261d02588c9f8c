// Tasks of people who look for calls.

import { callsOf, dayName, days, listed, numbersOf, type Task, type World } from './task.ts';
import { textOf, type User } from './user.ts';

const toCalls = (user: User) => user.follow('Calls');

/** The numbers in the line above the list, by their words. */
async function totals(user: User): Promise<Readonly<Record<string, number>>> {
  const text = await textOf(user.page.getByLabel('Totals'));
  const parts = text.replaceAll(/\s+/g, ' ').matchAll(/([a-z]+)(?: \([\d ]+%\))? ([\d,.]+)/g);
  const pairs = [...parts].map(([, word, count]) => [word, Number(count)]);
  return Object.fromEntries(pairs) as Readonly<Record<string, number>>;
}

type Summary = { readonly total: Readonly<Record<string, number>> };

const summary = async (world: World, query: object, botId?: string) => {
  const path = botId === undefined ? 'calls' : `bot/${botId}/calls`;
  const search = new URLSearchParams(query as Record<string, string>);
  return (await world.ask<Summary>(`${path}/summary?${search.toString()}`)).total;
};

export const finding: readonly Task[] = [
  {
    wish: 'How many calls were placed today?',
    read: async (user) => Number(/\d+/.exec(await user.section('Calls'))?.[0]),
    expect: async (world) => (await summary(world, days(0)))['accepted'],
  },
  {
    wish: 'Which share of today’s calls is answered, and is that more than last week?',
    read: async (user) => /\d+ %\s+Last \w+ until/.test(await user.section('Answer rate')),
    expect: async () => true,
  },
  {
    wish: 'At what hour were the most calls placed today?',
    act: (user) => user.click(user.page.getByText('The hours as a table')),
    read: async (user) => {
      const rows = await user.table('Today and last week by hour');
      return rows.toSorted((a, b) => Number(b['Calls'] ?? 0) - Number(a['Calls'] ?? 0))[0]?.[
        'Calls'
      ];
    },
    expect: async (world) => {
      const calls = await callsOf(world, days(0));
      const hours = calls.map((call) =>
        new Date((call as unknown as { acceptedAt: string }).acceptedAt).getHours(),
      );
      const counts = hours.map((hour) => hours.filter((other) => other === hour).length);
      return String(Math.max(...counts));
    },
  },
  {
    wish: 'Find yesterday’s machine calls of the bot reminders without a message left',
    act: async (user) => {
      await toCalls(user);
      await user.choose('When', 'yesterday');
      await user.filter('Bot', 'reminders');
      await user.choose('Result', 'Machine · no message left');
    },
    read: listed,
    expect: async (world) =>
      numbersOf(await callsOf(world, { ...days(-1), outcome: 'machine' }, 'reminders')),
  },
  {
    wish: 'Whom did the bot sales talk to yesterday?',
    act: async (user) => {
      await toCalls(user);
      await user.choose('When', 'yesterday');
      await user.filter('Bot', 'sales');
      await user.follow(/^(person|people)$/);
    },
    read: listed,
    expect: async (world) =>
      numbersOf(await callsOf(world, { ...days(-1), verdict: 'amd_human_detected' }, 'sales')),
  },
  {
    wish: 'Send a colleague the link to last week’s busy calls of the campaign renewals',
    act: async (user) => {
      await toCalls(user);
      await user.choose('When', 'last 7 days');
      await user.filter('Campaign', 'renewals');
      await user.choose('Result', 'Busy');
      await user.page.getByRole('button', { name: 'Copy link' }).waitFor();
    },
    read: async (user) => {
      const colleague = await user.page.context().newPage();
      await colleague.goto(user.page.url());
      const table = colleague.getByRole('table', { name: 'Calls, newest first' });
      await table.getByRole('row').nth(1).waitFor();
      const rows = await table.getByRole('row').count();
      await colleague.close();
      return rows - 1;
    },
    expect: async (world) =>
      numbersOf(await callsOf(world, { ...days(-6, 0), campaign: 'renewals', outcome: 'busy' }))
        .length,
  },
  {
    wish: 'What became of the calls to +1 202 555 0130?',
    act: async (user) => {
      await toCalls(user);
      await user.filter('Number or call id', '+1 202 555 0130');
    },
    read: async (user) =>
      (await user.table('Calls, newest first')).map((row) => [row['To'], row['Result']]),
    expect: async (world) =>
      (await callsOf(world, { number: '+12025550130' })).map(() => ['+1 202 555 0130', 'Busy']),
  },
  {
    wish: 'A customer sends a call id: open that call',
    act: async (user, { calls }) => {
      await toCalls(user);
      await user.paste('Number or call id', calls.person);
    },
    read: (user) => textOf(user.page.getByRole('heading', { level: 1 })),
    expect: async () => '+1 202 555 0100',
  },
  {
    wish: 'Download yesterday’s calls as a table for Excel',
    act: async (user) => {
      await toCalls(user);
      await user.choose('When', 'yesterday');
      await user.page.waitForURL(/from=/);
      const lines = String(await user.download(/CSV/))
        .trimEnd()
        .split('\r\n');
      return lines.length - 1;
    },
    read: async (_user, _world, got) => got,
    expect: async (world) => (await callsOf(world, days(-1))).length,
  },
  {
    wish: 'Which calls did carriers block in the last 7 days?',
    act: async (user) => {
      await toCalls(user);
      await user.choose('When', 'last 7 days');
      await user.choose('Result', 'Blocked by carrier');
    },
    read: listed,
    expect: async (world) =>
      numbersOf(await callsOf(world, { ...days(-6, 0), outcome: 'blocked' })),
  },
  {
    wish: 'Which numbers that we called in the last 30 days do not exist?',
    act: async (user) => {
      await toCalls(user);
      await user.choose('When', 'last 30 days');
      await user.choose('Result', 'No such number');
    },
    read: listed,
    expect: async (world) =>
      numbersOf(await callsOf(world, { ...days(-29, 0), outcome: 'invalid-number' })),
  },
  {
    wish: 'Who is talking to us at this moment?',
    act: async (user, world) => {
      await world.dialLive('sales');
      await toCalls(user);
      await user.choose('Result', 'Answered, not over');
    },
    read: listed,
    expect: async (world) => numbersOf(await callsOf(world, { status: 'answered' })),
  },
  {
    wish: 'What did we do on the day eight days ago?',
    act: async (user) => {
      await toCalls(user);
      await user.choose('When', 'days…');
      // The other day follows, because it is later.
      await user.type('To', dayName(-8));
    },
    read: listed,
    expect: async (world) => numbersOf(await callsOf(world, days(-8))),
  },
  {
    wish: 'Yesterday by the clock of Tokyo: how many calls?',
    act: async (user) => {
      await toCalls(user);
      await user.choose('When', 'yesterday');
      await user.choose('Time zone', 'Asia/Tokyo');
    },
    read: async (user) => (await totals(user))['calls'],
    expect: async (world, user) => {
      const day = new URL(user.page.url().replace('#/calls', '')).searchParams.get('from') ?? '';
      const from = new Date(`${day}T00:00:00+09:00`);
      const to = new Date(from.getTime() + 86_400_000);
      const period = { from: from.toISOString(), to: to.toISOString() };
      return (await summary(world, period))['accepted'];
    },
  },
  {
    wish: 'How many minutes did the bot surveys talk yesterday?',
    act: async (user) => {
      await toCalls(user);
      await user.choose('When', 'yesterday');
      await user.filter('Bot', 'surveys');
    },
    read: async (user) => (await totals(user))['minutes'],
    expect: async (world) => {
      const { minutes = 0 } = await summary(world, days(-1), 'surveys');
      return Math.round(minutes * 10) / 10;
    },
  },
  {
    wish: 'How many of yesterday’s calls failed?',
    act: async (user) => {
      await toCalls(user);
      await user.choose('When', 'yesterday');
    },
    read: async (user) => (await totals(user))['failed'],
    expect: async (world) => {
      const fine = ['completed', 'transferred', 'machine', 'voicemail-left', 'cancelled'];
      const calls = await callsOf(world, days(-1));
      return calls.filter(({ outcome = '' }) => ![...fine, 'not-permitted'].includes(outcome))
        .length;
    },
  },
  {
    wish: 'See all calls of the campaign spring',
    act: async (user) => {
      await toCalls(user);
      await user.filter('Campaign', 'spring');
    },
    read: listed,
    expect: async (world) => numbersOf(await callsOf(world, { campaign: 'spring' })),
  },
  {
    wish: 'See the calls before those on the first page',
    act: async (user) => {
      await toCalls(user);
      await user.press('Older');
    },
    read: async (user) => (await listed(user))[0],
    expect: async (world) => numbersOf((await callsOf(world, {})).slice(50))[0],
  },
  {
    wish: 'Read one of yesterday’s calls, and come back to the others',
    act: async (user) => {
      await toCalls(user);
      await user.choose('When', 'yesterday');
      await user.page.waitForURL(/from=/);
      const before = user.page.url();
      await user.follow(/^\+1/);
      await user.page.getByRole('region', { name: 'What happened' }).waitFor();
      await user.follow(/^← /);
      return before;
    },
    read: async (user, _world, before) => user.page.url() === before,
    expect: async () => true,
  },
];
