// Decides what the calls of a storm do besides ringing a phone: bots, transfers, voicemail
// messages, answers to call screeners, commands.

import { numberFor } from '../support/far-end.ts';
import type { BotKind } from './bots-process.ts';
import type { Random } from './random.ts';
import { recogniserName } from './recogniser.ts';

export type Wish = {
  readonly number: string;
  /** Additional members of the request. */
  readonly members: Readonly<Record<string, unknown>>;
  /** Commands that are sent one after the other once the call is accepted. */
  readonly commands: readonly Readonly<Record<string, unknown>>[];
};

/** The id of the sound that is uploaded before the storm. */
export const stormSound = 'storm';
/** The share of all calls that have a bot from the beginning. */
const streamed = 0.4;
/** The share of all calls that do each of these things. The remaining calls only ring and talk. */
const shares = {
  ...{ bridge: 0.12, refer: 0.05, transfer: 0.12, message: 0.1, screened: 0.05 },
  ...{ waitsForPerson: 0.05, commands: 0.08 },
} as const;
/**
 * The bots that do not simply talk. Half of all bots are chosen from this list, which contains
 * common misbehaviour twice.
 */
const oddBots: readonly [BotKind, ...BotKind[]] = [
  ...(['goodbye', 'goodbye', 'deploy', 'deploy', 'cut', 'cut'] as const),
  ...(['deaf', 'mute', 'garbage', 'flood'] as const),
];
const play = `sound:${stormSound}`;
const voicemail = { play, waitForBeepMs: 500, maxMs: 2_000 };
/** The time-outs are short, so that something follows the greeting even in a short call. */
const timers = { greetingCompletionTimeoutMs: 800, noSpeechTimeoutMs: 2_000 };

export class Wishes {
  /** The number of each agent, with the number of the person whom the agent is for. */
  readonly agents = new Map<string, string>();
  readonly #random: Random;
  readonly #botUrl: (bot: BotKind, number: string) => string;

  constructor(random: Random, botUrl: (bot: BotKind, number: string) => string) {
    this.#random = random;
    this.#botUrl = botUrl;
  }

  next(index: number): Wish {
    const kind = this.#kind();
    const number = this.#number(kind, index);
    const stream = this.#random.next() < streamed ? { stream: this.#stream(number) } : {};
    const { members, commands = [] } = this.#detailsOf(kind, number, index);
    return { number, members: { ...stream, ...members }, commands };
  }

  #kind(): keyof typeof shares | undefined {
    let left = this.#random.next();
    for (const [kind, share] of Object.entries(shares)) {
      left -= share;
      if (left < 0) return kind as keyof typeof shares;
    }
    return undefined;
  }

  /**
   * Returns a number whose phone fits the kind of call. For example, a phone that should get a
   * message usually talks.
   */
  #number(kind: keyof typeof shares | undefined, index: number): string {
    const random = this.#random;
    const silent = ['talk', 'talk', 'talk', 'stay', 'busy', 'ring', 'late'] as const;
    const talking = {
      message: ['mailbox', 'mailbox', 'mailbox', 'greets', 'talk'],
      screened: ['screener', 'screener', 'screener', 'mailbox'],
      waitsForPerson: ['greets', 'greets', 'stay', 'mailbox'],
    } as const;
    const behaviours =
      kind !== undefined && kind in talking ? talking[kind as keyof typeof talking] : silent;
    return numberFor(random.pick(behaviours), random.between(1, 30), index);
  }

  #detailsOf(
    kind: keyof typeof shares | undefined,
    number: string,
    index: number,
  ): Omit<Wish, 'number' | 'commands'> & Partial<Pick<Wish, 'commands'>> {
    const random = this.#random;
    switch (kind) {
      case 'bridge':
      case 'refer':
        return {
          members: { bridge: { ...this.#transfer(number, index), mode: kind, on: 'answered' } },
        };
      case 'transfer': {
        const mode = random.pick(['bridge', 'bridge', 'refer']);
        const transfer = { command: 'transfer', ...this.#transfer(number, index), mode };
        return { members: {}, commands: numbered([transfer], index) };
      }
      case 'message':
        return { members: { machineDetection: 'detect', timers, voicemail } };
      case 'screened':
        return {
          members: {
            ...{ machineDetection: 'detect', timers, screening: { play } },
            ...(random.next() < 0.5 && { voicemail }),
            callControlParameter: { sttProvider: recogniserName, sttLanguage: 'en-US' },
          },
        };
      case 'waitsForPerson':
        return this.#waiting(number, index);
      case 'commands':
        return {
          members: { machineDetection: 'disabled' },
          commands: this.#commands(number, index),
        };
      case undefined:
        return { members: {} };
    }
  }

  /**
   * A call with both a bot and an agent. The bot is connected when a person is detected. The agent
   * is called at that time, or already at the answer.
   */
  #waiting(number: string, index: number): Pick<Wish, 'members'> {
    const on = this.#random.pick(['person', 'answered']);
    const members = {
      ...{ machineDetection: 'detect', timers },
      stream: { ...this.#stream(number), connect: 'person' },
      bridge: { ...this.#transfer(number, index), mode: 'bridge', on },
    };
    return { members: this.#random.next() < 0.3 ? { ...members, voicemail } : members };
  }

  #commands(number: string, index: number): Wish['commands'] {
    const stream = { command: 'stream', ...this.#stream(number) };
    const sound = { command: 'play', sound: play };
    const all = [
      sound,
      stream,
      { command: 'stop' },
      stream,
      { command: 'stream', url: null },
      sound,
    ];
    const from = this.#random.between(0, 3);
    return numbered(all.slice(from, from + this.#random.between(1, 3)), index);
  }

  #transfer(number: string, index: number): Record<string, unknown> {
    const random = this.#random;
    const behaviour = random.pick(['talk', 'talk', 'stay', 'busy', 'ring', 'late']);
    // This index range is separate from the numbers of the persons.
    const agent = numberFor(behaviour, random.between(1, 20), 5_000_000 + index);
    this.agents.set(agent, number);
    const timeoutMs = random.between(1_000, 4_000);
    return { to: `tel:+${agent}`, timeoutMs, onFailure: random.pick(['hangup', 'stay']) };
  }

  #stream(number: string): { readonly url: string } {
    const bot = this.#random.next() < 0.5 ? 'talk' : this.#random.pick(oddBots);
    return { url: this.#botUrl(bot, number) };
  }
}

/** Gives each command an id, so that a repeated request counts as the same command. */
function numbered(
  commands: readonly Readonly<Record<string, unknown>>[],
  index: number,
): Wish['commands'] {
  return commands.map((command, position) => ({ ...command, id: `command-${index}-${position}` }));
}
