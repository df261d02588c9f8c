// The people whom a fault may hit: people who talk, alone, with a bot or with an agent, and phones
// that ring. The population is completed before each fault, and counted after it.

import { eventually } from '../../support/eventually.ts';
import { type FarCall, numberFor } from '../../support/far-end.ts';
import { isUp } from '../talking.ts';
import type { Member } from './members.ts';
import type { ServerWorld } from './server-world.ts';

const talkerKinds = ['plain', 'bot', 'bridged'] as const;
export type TalkerKind = (typeof talkerKinds)[number];

export type Talker = {
  readonly kind: TalkerKind;
  readonly callId: string;
  readonly number: string;
  readonly agent?: string;
};

/** A phone that rings when the fault begins, and picks up after some seconds. */
export type Ringer = {
  readonly callId: string;
  readonly number: string;
  readonly answersAfterS: number;
};

/** How many people of each kind each gateway has. */
const talkersEach = 2;
const ringersEach = 2;
/** These ranges are separate from those of the other traffic. */
const firstTalker = 2_000_000;
const firstAgent = 7_000_000;
const upTimeoutMs = 90_000;
/** The largest parameter of a phone, in seconds. */
const longestRingS = 99;
const rings = { timeoutInMs: 180_000, machineDetection: 'disabled' } as const;

export class Population {
  /** Ids of the calls, by number. */
  readonly accepted = new Map<string, string>();
  /** The number of each agent, with the number of the person whom the agent is for. */
  readonly agents = new Map<string, string>();
  readonly #world: ServerWorld;
  #talkers: readonly Talker[] = [];
  #next = 0;

  constructor(world: ServerWorld) {
    this.#world = world;
  }

  /** Replaces the people who were disconnected. Resolves when all of them talk. */
  async fill(): Promise<readonly Talker[]> {
    const calls = this.#callsByNumber();
    const kept = this.#talkers.filter((talker) => this.#isUp(talker, calls));
    const added: Talker[] = [];
    for (const kind of talkerKinds) {
      const missing = talkersEach * 2 - kept.filter((talker) => talker.kind === kind).length;
      for (let count = 0; count < missing; count += 1) {
        const member = this.#world.members[count % 2 === 0 ? 0 : 1];
        added.push(await this.#place(kind, member));
      }
    }
    this.#talkers = [...kept, ...added];
    const missing = (): string =>
      this.vanished()
        .map(({ kind, callId }) => `${kind} ${callId}`)
        .join(', ');
    await eventually(
      () => missing() === '',
      () => `people talk: ${missing()}`,
      upTimeoutMs,
    );
    return this.#talkers;
  }

  /** Forgets people whose disconnection is already counted. */
  forget(talkers: readonly Talker[]): void {
    this.#talkers = this.#talkers.filter((talker) => !talkers.includes(talker));
  }

  /** Returns the people who were disconnected and aren't forgotten. */
  vanished(): readonly Talker[] {
    return this.disconnected(this.#talkers);
  }

  disconnected(talkers: readonly Talker[]): readonly Talker[] {
    const calls = this.#callsByNumber();
    return talkers.filter((talker) => !this.#isUp(talker, calls));
  }

  /** Returns when the phones of these people left their calls, by `Date.now()`. */
  endsOf(talkers: readonly Talker[]): readonly number[] {
    const calls = this.#callsByNumber();
    return talkers.flatMap(({ number }) => calls.get(number)?.endedAt ?? []);
  }

  /**
   * Makes phones ring, some of which pick up during a fault of this length, and some after it, if
   * they ring that long.
   */
  async ring(faultS: number): Promise<readonly Ringer[]> {
    const ringers: Ringer[] = [];
    const during = Math.min(3, faultS);
    const after = faultS + 8;
    const waits = after <= longestRingS ? [during, after] : [during];
    for (const member of this.#world.members) {
      for (const answersAfterS of waits) {
        for (let count = 0; count < ringersEach; count += 1) {
          const number = numberFor('later-stay', answersAfterS, this.#nextIndex());
          ringers.push({ number, answersAfterS, callId: await this.#dial(member, number, rings) });
        }
      }
    }
    const numbers = new Set(ringers.map(({ number }) => number));
    await eventually(
      () =>
        this.#callsOf(numbers).filter(({ rangAt }) => rangAt !== undefined).length === numbers.size,
      'the phones ring',
      upTimeoutMs,
    );
    return ringers;
  }

  phonesOf(ringers: readonly Ringer[]): readonly FarCall[] {
    const calls = this.#callsByNumber();
    return ringers.flatMap(({ number }) => calls.get(number) ?? []);
  }

  /** Hangs up over the API, at any gateway that answers. */
  async hangUp(callIds: readonly string[]): Promise<void> {
    for (const callId of callIds) {
      for (const { gateway } of this.#world.members) {
        const answer = await gateway?.dialer.end(callId).catch(() => undefined);
        if (answer !== undefined && answer.status < 500) break;
      }
    }
  }

  async hangUpAll(): Promise<void> {
    await this.hangUp(this.#talkers.map(({ callId }) => callId));
  }

  async #place(kind: TalkerKind, member: Member): Promise<Talker> {
    const number = numberFor('stay', 0, this.#nextIndex());
    if (kind === 'plain') return { kind, number, callId: await this.#dial(member, number, {}) };
    if (kind === 'bot') {
      const stream = { url: this.#world.bots.url('talk', number) };
      return { kind, number, callId: await this.#dial(member, number, { stream }) };
    }
    const agent = numberFor('stay', 0, firstAgent + this.#next);
    this.agents.set(agent, number);
    const bridge = { to: `tel:+${agent}`, mode: 'bridge', on: 'answered', onFailure: 'hangup' };
    return { kind, number, agent, callId: await this.#dial(member, number, { bridge }) };
  }

  async #dial(member: Member, number: string, members: Record<string, unknown>): Promise<string> {
    const { gateway } = member;
    if (gateway === undefined) throw new Error(`gateway ${member.name} does not run`);
    const notifyurl = this.#world.cluster.receiver.url;
    const body = { target: `tel:+${number}`, notifyurl, machineDetection: 'disabled', ...members };
    const { callId } = await gateway.dialer.dial(body);
    this.accepted.set(number, callId);
    return callId;
  }

  #nextIndex(): number {
    this.#next += 1;
    return firstTalker + this.#next;
  }

  #callsByNumber(): ReadonlyMap<string, FarCall> {
    return new Map(this.#world.cluster.farEnd.calls.map((call) => [call.number, call]));
  }

  #callsOf(numbers: ReadonlySet<string>): readonly FarCall[] {
    return this.#world.cluster.farEnd.calls.filter(({ number }) => numbers.has(number));
  }

  #isUp({ number, agent, kind }: Talker, calls: ReadonlyMap<string, FarCall>): boolean {
    const isPhoneUp = (one: string): boolean => {
      const call = calls.get(one);
      return call !== undefined && isUp(call);
    };
    if (!isPhoneUp(number)) return false;
    if (agent !== undefined && !isPhoneUp(agent)) return false;
    const { connections } = this.#world.bots;
    return (
      kind !== 'bot' ||
      connections.some((bot) => bot.number === number && bot.closedAt === undefined)
    );
  }
}
