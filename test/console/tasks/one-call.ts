// Tasks of people who want to know about one call, or to place or end one.

import { callOf, openById, type Task, written } from './task.ts';
import { textOf, type User } from './user.ts';

/** A fact of a call's page, by its name. */
async function fact(user: User, name: string): Promise<string> {
  const term = user.page.getByRole('term').filter({ hasText: new RegExp(`^${name}$`) });
  return await textOf(term.locator('xpath=following-sibling::dd'));
}

const story = (user: User) => textOf(user.page.locator('.story'));
const holds = (text: string, ...patterns: readonly RegExp[]) =>
  patterns.map((pattern) => pattern.test(text));

export const oneCall: readonly Task[] = [
  {
    wish: 'Was our message left in this call, and how long was it?',
    act: (user, { calls }) => openById(user, calls.message),
    read: async (user) => /Your message \(([\d.]+) s\) was left/.exec(await story(user))?.[1],
    expect: async (world) => {
      const { timeline } = await callOf(world, world.calls.message);
      const end: { readonly voicemail?: { readonly durationMs: number } } =
        timeline.at(-1)?.data ?? {};
      return ((end.voicemail?.durationMs ?? 0) / 1_000).toFixed(1);
    },
  },
  {
    wish: 'What did detection say first and last in this call?',
    act: (user, { calls }) => openById(user, calls.screener),
    read: async (user) => {
      const items = user.page.getByRole('region', { name: 'Detection' }).getByRole('listitem');
      const names = await items.locator('strong').allInnerTexts();
      return [names[0], names.at(-1)];
    },
    expect: async () => ['Machine', 'Detection over'],
  },
  {
    wish: 'Why did this call fail, and whose fault is it?',
    act: (user, { calls }) => openById(user, calls.blocked),
    read: async (user) => [
      ...holds(await story(user), /^A carrier blocked the call/),
      await fact(user, 'At fault'),
    ],
    expect: async (world) => {
      const { outcome, fault } = await callOf(world, world.calls.blocked);
      return [outcome === 'blocked', `the ${fault}`];
    },
  },
  {
    wish: 'Listen to the recording of this call',
    act: async (user, { calls }) => {
      await openById(user, calls.recorded);
      await user.press('Play');
    },
    read: async (user) =>
      Number(await user.page.evaluate("document.querySelector('audio').currentTime")) > 0.2,
    expect: async () => true,
  },
  {
    wish: 'Keep the recording of this call as a file',
    act: async (user, { calls }) => {
      await openById(user, calls.recorded);
      const file = await user.download('Download');
      return file.subarray(0, 4).toString();
    },
    read: async (_user, _world, got) => got,
    expect: async () => 'RIFF',
  },
  {
    wish: 'Who hung up in this call?',
    act: (user, { calls }) => openById(user, calls.person),
    read: async (user) => holds(await story(user), /The person hung up after/),
    expect: async (world) => {
      const { timeline } = await callOf(world, world.calls.person);
      return [timeline.at(-1)?.data['reasonCode'] === 'Caller-disconnected'];
    },
  },
  {
    wish: 'How good was the line of this call?',
    act: (user, { calls }) => openById(user, calls.message),
    read: async (user) => /MOS ([\d.]+) of/.exec(await user.section('Sound'))?.[1],
    expect: async (world) => {
      const { quality } = await callOf(world, world.calls.message);
      return quality?.mos.toFixed(2);
    },
  },
  {
    wish: 'Did our server get the notification of the end of this call?',
    act: (user, { calls }) => openById(user, calls.person),
    read: async (user) =>
      await user.page.getByRole('button', { name: /Call over.* delivered/ }).count(),
    expect: async () => 1,
  },
  {
    wish: 'Give the carrier the SIP messages of this call',
    act: async (user, { calls }) => {
      await openById(user, calls.declined);
      const file = await user.download(/pcap/);
      return file.subarray(0, 4).toString('hex');
    },
    read: async (_user, _world, got) => got,
    expect: async () => 'd4c3b2a1',
  },
  {
    wish: 'Which headers did our INVITE have?',
    act: async (user, { calls }) => {
      await openById(user, calls.busy);
      await user.press(/INVITE \+ SDP/);
    },
    read: async (user) =>
      holds(await user.section('What happened'), /^From: /m, /^CSeq: \d+ INVITE/m),
    expect: async () => [true, true],
  },
  {
    wish: 'How long did the phone ring in this call?',
    act: (user, { calls }) => openById(user, calls.noAnswer),
    read: (user) => fact(user, 'Rang'),
    expect: async (world) => {
      const { timeline } = await callOf(world, world.calls.noAnswer);
      const at = (type: string) =>
        Date.parse(timeline.find((event) => event.type === type)?.time ?? '');
      return `${((at('failed') - at('ringing')) / 1_000).toFixed(1)} s`;
    },
  },
  {
    wish: 'Whom was the person of this call transferred to?',
    act: (user, { calls }) => openById(user, calls.transferred),
    read: async (user) => /connected to (\+[\d ]+\d) for/.exec(await story(user))?.[1],
    expect: async (world) => {
      const { timeline } = await callOf(world, world.calls.transferred);
      const { to } = timeline.find(({ type }) => type === 'transfer-completed')?.data ?? {};
      return written(to ?? '');
    },
  },
  {
    wish: 'Which number did the person of this call see?',
    act: (user, { calls }) => openById(user, calls.person),
    read: (user) => fact(user, 'From'),
    expect: async (world) => written((await callOf(world, world.calls.person)).caller),
  },
  {
    wish: 'Give a developer everything about this call',
    act: async (user, { calls }) => {
      await openById(user, calls.fax);
      const file = await user.download(/JSON/);
      return Object.keys(JSON.parse(String(file)) as object).includes('call');
    },
    read: async (_user, _world, got) => got,
    expect: async () => true,
  },
  {
    wish: 'Place a test call to a mailbox',
    act: async (user) => {
      await user.follow('Calls');
      await user.press('Dial');
      await user.type('Target', '+12025550110');
      await user.press('Place the call');
    },
    read: (user) => textOf(user.page.getByRole('heading', { level: 1 })),
    expect: async () => '+1 202 555 0110',
  },
  {
    wish: 'Dial a number as it stands on a business card, and learn what is wrong with it',
    act: async (user) => {
      await user.follow('Calls');
      await user.press('Dial');
      await user.type('Target', '(202) 555-0110');
      await user.press('Place the call');
    },
    read: async (user) => holds(await textOf(user.page.getByRole('alert')), /\+1 202 555 0110/),
    expect: async () => [true],
  },
  {
    wish: 'End a call that goes on too long',
    act: async (user, world) => {
      const callId = await world.dialLive('surveys');
      await openById(user, callId);
      await user.page.locator('.story', { hasText: 'answered' }).waitFor();
      await user.press('Hang up');
    },
    read: async (user) => holds(await story(user), /hung up after/),
    expect: async () => [true],
  },
];
