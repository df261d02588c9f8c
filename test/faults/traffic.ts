// A dialer application that cannot afford to lose a call. It sends each request to any node, with
// an idempotency key, and repeats it until it gets an answer.

import { setTimeout as pause } from 'node:timers/promises';
import type { Cluster } from '../support/cluster.ts';
import type { Dialer } from '../support/dialer-client.ts';
import { isTerminal } from '../support/receiver.ts';
import type { FaultyBots } from './faulty-bots.ts';
import type { Random } from './random.ts';
import { type Wish, Wishes } from './wishes.ts';

export type TrafficWorld = {
  readonly cluster: Pick<Cluster, 'receiver'>;
  readonly bots: Pick<FaultyBots, 'url'>;
  /** A gateway that runs. */
  anyDialer(random: Random): Dialer | undefined;
};

/** What a request was answered with, by `Date.now()`. Without an answer there is no status. */
export type DialOutAnswer = {
  readonly at: number;
  readonly tookMs: number;
  readonly status?: number;
  readonly type?: string | undefined;
};

type Request = {
  readonly number: string;
  readonly key: string;
  readonly body: Record<string, unknown>;
  readonly commands: Wish['commands'];
};

function isRefusal(status: number, { type }: { readonly type?: string }): boolean {
  return status === 429 || (status === 503 && type === 'urn:offhook:problem:unavailable');
}

/**
 * The maximum number of attempts for one request after the storm, when every node answers. More
 * attempts mean that something is wrong.
 */
const mostDoubtTries = 50;

export class Traffic {
  /** Ids of the accepted calls, by number. */
  readonly accepted = new Map<string, string>();
  /** Numbers of requests whose answer said that nothing was accepted. */
  readonly refused = new Set<string>();
  readonly answers: DialOutAnswer[] = [];
  readonly #world: TrafficWorld;
  readonly #random: Random;
  readonly #wishes: Wishes;
  readonly #everyMs: number;
  readonly #members: Readonly<Record<string, unknown>>;
  readonly #doubts: Request[] = [];
  readonly #underWay = new Set<Promise<void>>();
  readonly #counts = { requests: 0, unanswered: 0, hungUp: 0, commanded: 0 };
  #running: Promise<void> | undefined;
  #isStopping = false;

  /** @param members additional members of every request */
  constructor(
    world: TrafficWorld,
    random: Random,
    callsPerSecond: number,
    members: Readonly<Record<string, unknown>> = {},
  ) {
    this.#world = world;
    this.#members = members;
    this.#random = random;
    this.#wishes = new Wishes(random, (bot, number) => world.bots.url(bot, number));
    this.#everyMs = 1_000 / callsPerSecond;
  }

  start(): void {
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    await this.#running;
    await Promise.all(this.#underWay);
  }

  /** The number of each agent, with the number of the person whom the agent is for. */
  get agents(): ReadonlyMap<string, string> {
    return this.#wishes.agents;
  }

  /** Repeats every request that had no answer, because the checks must know every accepted call. */
  async settleDoubts(): Promise<void> {
    for (const request of this.#doubts.splice(0)) {
      for (let tries = 1; !(await this.#send(request)); tries += 1) {
        if (tries === mostDoubtTries) throw new Error('no node answers after the storm');
        await pause(200);
      }
    }
  }

  /** Counts the accepted calls whose end has not reached the receiver. */
  unnotified(): number {
    const ended = new Set<string>();
    for (const { body } of this.#world.cluster.receiver.accepted()) {
      if (isTerminal(body)) ended.add(body.callId);
    }
    return [...this.accepted.values()].filter((callId) => !ended.has(callId)).length;
  }

  counts(): Readonly<Record<string, number>> {
    return { ...this.#counts, refused: this.refused.size, accepted: this.accepted.size };
  }

  async #run(): Promise<void> {
    for (let index = 0; !this.#isStopping; index += 1) {
      this.#keep(this.#begin(this.#request(index)));
      await pause(this.#everyMs);
    }
  }

  async #begin(request: Request): Promise<void> {
    this.#counts.requests += 1;
    if (!(await this.#send(request))) this.#doubts.push(request);
  }

  #request(index: number): Request {
    const random = this.#random;
    const { number, members, commands } = this.#wishes.next(index);
    return {
      ...{ number, commands, key: `storm-${index}` },
      body: {
        target: `tel:+${number}`,
        notifyurl: this.#world.cluster.receiver.url,
        timeoutInMs: random.between(2_000, 6_000),
        machineDetection: random.pick(['disabled', 'detect']),
        metadata: { index },
        ...this.#members,
        ...members,
      },
    };
  }

  /** Sends a request once. Returns false if it is unknown whether the call was accepted. */
  async #send({ number, key, body, commands }: Request): Promise<boolean> {
    const dialer = this.#world.anyDialer(this.#random);
    if (dialer === undefined) return false;
    const at = Date.now();
    const keep = (answer: Pick<DialOutAnswer, 'status' | 'type'>): void =>
      void this.answers.push({ at, tookMs: Date.now() - at, ...answer });
    try {
      const answer = await dialer.post(body, { 'idempotency-key': key });
      keep({ status: answer.status, type: (answer.body as { type?: string }).type });
      const { callId } = answer.body as { readonly callId?: string };
      if (answer.status === 200 && callId !== undefined) {
        this.accepted.set(number, callId);
        if (this.#random.next() < 0.2) this.#hangUpLater(callId);
        if (commands.length > 0) this.#commandLater(callId, commands);
        return true;
      }
      // Only a refusal proves that nothing was accepted. Any other answer proves nothing, for
      // example a 503 of a node that does not know the outcome.
      if (!isRefusal(answer.status, answer.body)) return false;
      this.refused.add(number);
      return true;
    } catch {
      keep({});
      this.#counts.unanswered += 1;
      return false;
    }
  }

  #commandLater(callId: string, commands: Wish['commands']): void {
    const command = async (): Promise<void> => {
      for (const one of commands) {
        await pause(this.#random.between(100, 1_500));
        await this.#command(callId, one);
      }
    };
    this.#keep(command().catch(() => undefined));
  }

  /**
   * Sends a command, and repeats it at another node if there was no answer. The id of the command
   * makes this idempotent.
   */
  async #command(callId: string, command: Wish['commands'][number]): Promise<void> {
    for (let tries = 0; tries < 2; tries += 1) {
      const answer = await this.#world
        .anyDialer(this.#random)
        ?.command(callId, command)
        .catch(() => undefined);
      if (answer?.status === 202) this.#counts.commanded += 1;
      if (answer !== undefined && answer.status !== 503) return;
    }
  }

  #hangUpLater(callId: string): void {
    const hangUp = async (): Promise<void> => {
      await pause(this.#random.between(0, 3_000));
      const dialer = this.#world.anyDialer(this.#random);
      if (dialer === undefined) return;
      await dialer.request('DELETE', `/api/public/bot/${dialer.botId}/calls/${callId}`);
      this.#counts.hungUp += 1;
    };
    // If the node has died, another node ends the call.
    this.#keep(hangUp().catch(() => undefined));
  }

  #keep(work: Promise<void>): void {
    const kept = work.finally(() => this.#underWay.delete(kept));
    this.#underWay.add(kept);
  }
}
