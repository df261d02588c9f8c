// A task is a wish of somebody who uses the console, with the answer that the API gives.

import type { Filled } from './filled.ts';
import type { User } from './user.ts';

export type World = Filled & {
  /** Reads from the API. */
  ask<Answer>(path: string): Promise<Answer>;
};

export type Task = {
  readonly wish: string;
  /** What the user does, from the front page on. */
  act?(user: User, world: World): Promise<unknown>;
  /**
   * What the user then reads on the page. It may take a moment to get there. `got` is what `act`
   * returned, e.g. from a file.
   */
  read(user: User, world: World, got: unknown): Promise<unknown>;
  /** What the API says. */
  expect(world: World, user: User): Promise<unknown>;
};

export type Call = {
  readonly callId: string;
  readonly target: string;
  readonly outcome?: string;
  readonly campaign?: string;
};

const dayMs = 86_400_000;

/** The days of the browser, whose clock is that of this machine. `last` is the last day. */
export function days(first: number, last = first): Readonly<Record<'from' | 'to', string>> {
  const midnight = new Date();
  midnight.setHours(0, 0, 0, 0);
  const at = (day: number) => new Date(midnight.getTime() + day * dayMs).toISOString();
  return { from: at(first), to: at(last + 1) };
}

/** `YYYY-MM-DD`, as a field for a day wants it. */
export function dayName(day: number): string {
  const date = new Date(Date.now() + day * dayMs);
  const two = (value: number) => String(value).padStart(2, '0');
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

export async function callsOf(world: World, query: object, botId?: string) {
  const path = botId === undefined ? 'calls' : `bot/${botId}/calls`;
  const search = new URLSearchParams({ limit: '200', ...query });
  const { calls } = await world.ask<{ readonly calls: readonly Call[] }>(
    `${path}?${search.toString()}`,
  );
  return calls;
}

/** At most as many as a page of the list shows. */
const pageSize = 50;

/** The numbers of calls as the list shows them. */
export const numbersOf = (calls: readonly Call[]) =>
  calls.slice(0, pageSize).map(({ target }) => written(target));

/** A number of North America, as the pages write it. */
export function written(target: string): string {
  const [, ...groups] = /\+?1(\d{3})(\d{3})(\d{4})/.exec(target) ?? [];
  return `+1 ${groups.join(' ')}`;
}

export const listed = async (user: User) =>
  (await user.table('Calls, newest first')).map((row) => row['To']);

export type CallPage = {
  readonly outcome: string;
  readonly reason: string;
  readonly fault?: string;
  readonly caller: string;
  readonly quality?: { readonly mos: number };
  readonly timeline: readonly {
    readonly type: string;
    readonly time: string;
    readonly data: Readonly<Record<string, never>>;
  }[];
};

export const callOf = (world: World, callId: string) => world.ask<CallPage>(`calls/${callId}`);

/** Opens a call whose id somebody has sent. */
export async function openById(user: User, callId: string): Promise<void> {
  await user.follow('Calls');
  await user.paste('Number or call id', callId);
}
