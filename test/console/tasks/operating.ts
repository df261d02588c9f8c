// Tasks of people who operate the gateway, and of those who decide who may be called.

import { type Call, callsOf, days, listed, numbersOf, type Task, type World } from './task.ts';
import { textOf, type User } from './user.ts';

const status = (user: User) => user.page.locator('main [role="status"]').allInnerTexts();
const suppressed = '+12025550177';

type Held = Call & { readonly waitsFor?: { readonly rule: string } };
/** The rules that hold calls on the stage, most calls first. */
const ruleNames = {
  hours: 'Outside the calling hours',
  'abandoned-rate': 'Too many of the campaign’s calls were abandoned',
};

type Suppression = { readonly number: string; readonly reason: string; readonly source: string };
const suppressions = async (world: World) =>
  (await world.ask<{ readonly suppressions: readonly Suppression[] }>('suppressions')).suppressions;

export const operating: readonly Task[] = [
  {
    wish: 'Which receiver fails, why, and when is the next try?',
    read: async (user) => {
      const [row] = await user.table('Failing receivers');
      return [
        row?.['Receiver']?.split('\n')[0],
        row?.['Last error'],
        /^(\d\d:\d\d:\d\d|now)$/.test(row?.['Next try'] ?? ''),
      ];
    },
    expect: async ({ failing }) => [failing, 'it is not available at the moment', true],
  },
  {
    wish: 'Its fault is repaired: try that receiver now',
    act: (user) => user.press(/^Try now/),
    read: async (user) => (await status(user)).some((text) => /^(Trying|Being tried)/.test(text)),
    expect: async () => true,
  },
  {
    wish: 'Which rules hold calls today, and how many?',
    read: async (user) =>
      (await user.table('Held by rules')).map((row) => [row['Rule'], row['Waiting calls']]),
    expect: async (world) => {
      const held = (await callsOf(world, { status: 'queued' })) as readonly Held[];
      return Object.entries(ruleNames)
        .map(([rule, name]) => [
          name,
          held.filter(({ waitsFor }) => waitsFor?.rule === rule).length,
        ])
        .filter(([, count]) => count !== 0)
        .map(([name, count]) => [name, String(count)]);
    },
  },
  {
    wish: 'Which calls did rules refuse today?',
    act: (user) => user.follow(/^\d+ calls?$/),
    read: listed,
    expect: async (world) =>
      numbersOf(await callsOf(world, { ...days(0), outcome: 'not-permitted' })),
  },
  {
    wish: 'Is any of our servers down?',
    read: (user) => user.words(/^All is well/),
    expect: async () => 'All is well: no server has a problem.',
  },
  {
    wish: 'Since when has the database been up?',
    act: (user) => user.follow('All servers'),
    read: async (user) => {
      const row = (await user.table('Servers')).find(({ Server = '' }) =>
        /^PostgreSQL/.test(Server),
      );
      return [row?.['State'], /\d\d:\d\d/.test(row?.['Since'] ?? '')];
    },
    expect: async () => ['Up', true],
  },
  {
    wish: 'Which trunk’s rate of short calls rose?',
    act: (user) => user.follow('Trunks'),
    read: async (user) =>
      (await user.table('Last 24 hours'))
        .filter((row) => /\+\d\d\.\d points/.test(row['Short calls'] ?? ''))
        .map((row) => row['Trunk']),
    expect: async () => ['carrier-b'],
  },
  {
    wish: 'Which of our caller IDs do carriers block most?',
    act: (user) => user.follow('by caller ID'),
    read: async (user) => (await user.table('Caller IDs'))[0]?.['Caller ID'],
    expect: async (world) => {
      const { from } = days(-13);
      const { to } = days(0);
      const path = `calls/callers?${new URLSearchParams({ from, to }).toString()}`;
      const { callers } = await world.ask<{ readonly callers: readonly { caller: string }[] }>(
        path,
      );
      return (callers[0]?.caller ?? '').replace(/^1(\d{3})(\d{3})(\d{4})$/, '1 $1 $2 $3');
    },
  },
  {
    wish: 'Which version does this node run?',
    act: (user) => user.follow('Nodes'),
    read: async (user) => {
      const [row] = await user.table('Nodes');
      return [row?.['Node'], /^\d+\.\d+/.test(row?.['Version'] ?? ''), row?.['State']];
    },
    expect: async () => ['gateway-1 this node', true, 'up'],
  },
  {
    wish: 'Which calls were taken for a fax?',
    act: async (user) => {
      await user.follow('Detection');
      await user.follow('Fax tone');
    },
    read: async (user) => (await user.table('Calls')).map((row) => row['Call']),
    expect: async ({ calls }) => [calls.fax.slice(5, 13)],
  },
  {
    wish: 'How often is the first verdict that it is a person?',
    act: (user) => user.follow('Detection'),
    read: async (user) => {
      const rows = user.page.getByRole('table', { name: 'First verdict' }).getByRole('row');
      return /\d+ %/.test(await textOf(rows.filter({ hasText: 'Person' })));
    },
    expect: async () => true,
  },
  {
    wish: 'A receiver was wrong to refuse a notification: send it again',
    act: async (user) => {
      await user.follow('Notifications');
      await user.press(/^Send again: completed/);
    },
    read: (user) => user.page.getByRole('button', { name: /^Send again: completed/ }).count(),
    expect: async () => 0,
  },
  {
    wish: 'Suppress a number that complained',
    act: async (user) => {
      await user.follow('Suppressions');
      await user.type('Number', suppressed);
      await user.choose('Reason', 'Complaint');
      await user.press('Suppress');
    },
    read: async (user) => (await status(user)).some((text) => /is suppressed\. No call/.test(text)),
    expect: async (world) =>
      (await suppressions(world)).some(
        ({ number, reason }) => number.includes(suppressed) && reason === 'complaint',
      ),
  },
  {
    wish: 'Why is +1 202 555 0107 not called any more?',
    act: async (user) => {
      await user.follow('Suppressions');
      await user.type('Number', '+1 202 555 0107');
      await user.press('Look up');
    },
    read: async (user) =>
      (await status(user)).some((text) => /Opt-out, from letter of 3 May/.test(text)),
    expect: async (world) =>
      (await suppressions(world)).some(({ source }) => source === 'letter of 3 May'),
  },
  {
    wish: 'That person wants to be called again: permit it',
    act: async (user) => {
      await user.follow('Suppressions');
      await user.press(new RegExp(`^Remove .*${suppressed.slice(1)}`));
      await user.press('Allow calls');
      await user.page.getByRole('dialog').waitFor({ state: 'hidden' });
    },
    read: async (user) =>
      (await user.table('Suppressions')).filter(({ Number: number = '' }) => /0177$/.test(number))
        .length,
    expect: async (world) =>
      (await suppressions(world)).filter(({ number }) => number.includes(suppressed)).length,
  },
  {
    wish: 'May I call +1 202 555 0101 now under the office hours, and if not, when?',
    act: async (user) => {
      await user.follow('Rules');
      await user.type('Number', '+12025550101');
      await user.choose('Rule set', 'office-hours');
      await user.press('Check');
    },
    read: async (user) =>
      (await status(user)).some((text) =>
        /^May not be called: outside the calling hours until .*\d\d:\d\d/.test(text),
      ),
    expect: async () => true,
  },
  {
    wish: 'What did the first version of the rule set office-hours say?',
    act: async (user) => {
      await user.follow('Rules');
      await user.follow('office-hours');
      await user.choose('Version', '1');
      await user.page.getByText('Version 1, stored').waitFor();
    },
    read: async (user) =>
      JSON.parse(await user.page.getByLabel('Document, as JSON').first().inputValue()) as object,
    expect: async (world) =>
      (await world.ask<{ readonly document: object }>('rules/office-hours?version=1')).document,
  },
  {
    wish: 'Add a rule set with calling hours',
    act: async (user) => {
      await user.follow('Rules');
      await user.type('Name', 'evenings');
      await user.press('Add a rule set');
      await user.press('Store');
      await user.page.getByText('Version 1, stored').waitFor();
    },
    read: (user) => textOf(user.page.getByRole('heading', { level: 1 })),
    expect: async (world) => (await world.ask<{ readonly name: string }>('rules/evenings')).name,
  },
  {
    wish: 'Is the campaign autumn held, and until when?',
    act: async (user) => {
      await user.follow('Campaigns');
      await user.follow('autumn');
    },
    read: async (user) =>
      (await status(user)).some((text) => /Too many calls were abandoned/.test(text)),
    expect: async (world) =>
      (await world.ask<{ readonly held: object | null }>('campaigns/autumn')).held !== null,
  },
  {
    wish: 'See the calls of the campaign autumn',
    act: async (user) => {
      await user.follow('Campaigns');
      await user.follow('autumn');
      await user.click(user.page.getByRole('main').getByRole('link', { name: 'Calls' }));
    },
    read: listed,
    expect: async (world) =>
      numbersOf((await callsOf(world, { campaign: 'autumn' })) as readonly Call[]),
  },
];
