// A dialer application that cannot afford to lose a call: it sends each request with an idempotency key, to any node, and
// where it got no answer it asks again until it has one.

import { setTimeout as pause } from 'node:timers/promises';
import { numberFor } from '../support/far-end.ts';
import { isTerminal } from '../support/receiver.ts';
import type { BotKind } from './bots-process.ts';
import type { FaultyCluster } from './faulty-cluster.ts';
import type { Random } from './random.ts';

type Request = {
  readonly number: string;
  readonly key: string;
  readonly body: Record<string, unknown>;
  /** A transfer that is commanded when it was accepted. */
  readonly command?: Record<string, unknown>;
};

/** After the storm every node answers; more than a few tries mean that something is wrong. */
const mostDoubtTries = 50;
/** Of all calls. */
const streamed = 0.4;
/** Of all calls, each: what they are to do beside or after that. */
const shares = { bridge: 0.15, refer: 0.05, command: 0.15, plans: 0.1 } as const;
/** Uploaded before the storm. */
export const stormSound = 'storm';
/** Half of the bots do what bots should. */
const oddBots: readonly [BotKind, ...BotKind[]] = [
  ...(['goodbye', 'goodbye', 'deploy', 'deploy', 'cut', 'cut'] as const),
  ...(['deaf', 'mute', 'garbage', 'flood'] as const),
];

export class Traffic {
  /** Call ids by number. */
  readonly accepted = new Map<string, string>();
  /** The numbers of agents: of each the number of the person that it is for. */
  readonly agents = new Map<string, string>();
  readonly #world: FaultyCluster;
  readonly #random: Random;
  readonly #everyMs: number;
  readonly #doubts: Request[] = [];
  readonly #underWay = new Set<Promise<void>>();
  readonly #counts = { requests: 0, refused: 0, unanswered: 0, hungUp: 0, commanded: 0 };
  #running: Promise<void> | undefined;
  #isStopping = false;

  constructor(world: FaultyCluster, random: Random, callsPerSecond: number) {
    this.#world = world;
    this.#random = random;
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

  /** Asks again for every request that had no answer: what was accepted must be known. */
  async settleDoubts(): Promise<void> {
    for (const request of this.#doubts.splice(0)) {
      for (let tries = 1; !(await this.#send(request)); tries += 1) {
        if (tries === mostDoubtTries) throw new Error('no node answers after the storm');
        await pause(200);
      }
    }
  }

  /** Accepted calls whose end the receiver has not heard of. */
  unnotified(): number {
    const told = new Set<string>();
    for (const { body } of this.#world.cluster.receiver.accepted()) {
      if (isTerminal(body)) told.add(body.callId);
    }
    return [...this.accepted.values()].filter((callId) => !told.has(callId)).length;
  }

  counts(): Readonly<Record<string, number>> {
    return { ...this.#counts, accepted: this.accepted.size };
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
    const behaviour = random.pick(['talk', 'talk', 'talk', 'stay', 'busy', 'ring', 'late']);
    const number = numberFor(behaviour, random.between(1, 30), index);
    const { command, ...wanted } = this.#transfers(number, index);
    return {
      number,
      key: `storm-${index}`,
      body: {
        target: `tel:+${number}`,
        notifyurl: this.#world.cluster.receiver.url,
        timeoutInMs: random.between(2_000, 6_000),
        machineDetection: random.pick(['disabled', 'detect']),
        metadata: { index },
        ...(random.next() < streamed && { stream: this.#stream(number) }),
        ...wanted,
      },
      ...(command === undefined ? {} : { command }),
    };
  }

  /** What of its call is for somebody else than its bot. */
  #transfers(
    number: string,
    index: number,
  ): Record<string, unknown> & { readonly command?: Record<string, unknown> } {
    const drawn = this.#random.next();
    const transfer = this.#transfer(number, index);
    let below = 0;
    const is = (share: number): boolean => {
      below += share;
      return drawn < below;
    };
    if (is(shares.bridge)) return { bridge: { ...transfer, mode: 'bridge', on: 'answered' } };
    if (is(shares.refer)) return { bridge: { ...transfer, mode: 'refer', on: 'answered' } };
    if (is(shares.command)) {
      const mode = this.#random.pick(['bridge', 'bridge', 'refer']);
      return { command: { command: 'transfer', id: `transfer-${index}`, ...transfer, mode } };
    }
    if (!is(shares.plans)) return {};
    const play = `sound:${stormSound}`;
    return {
      machineDetection: 'detect',
      voicemail: { play, waitForBeepMs: 500, maxMs: 2_000 },
      screening: { play },
    };
  }

  #transfer(number: string, index: number): Record<string, unknown> {
    const random = this.#random;
    const behaviour = random.pick(['talk', 'talk', 'stay', 'busy', 'ring', 'late']);
    // Beside the numbers of those who are called first.
    const agent = numberFor(behaviour, random.between(1, 20), 5_000_000 + index);
    this.agents.set(agent, number);
    const timeoutMs = random.between(1_000, 4_000);
    return { to: `tel:+${agent}`, timeoutMs, onFailure: random.pick(['hangup', 'stay']) };
  }

  #stream(number: string): object {
    const bot = this.#random.next() < 0.5 ? 'talk' : this.#random.pick(oddBots);
    return { url: this.#world.bots.url(bot, number) };
  }

  /** False: whether it was accepted is not known. */
  async #send({ number, key, body, command }: Request): Promise<boolean> {
    const dialer = this.#world.anyDialer(this.#random);
    if (dialer === undefined) return false;
    try {
      const answer = await dialer.post(body, { 'idempotency-key': key });
      const { callId } = answer.body as { readonly callId?: string };
      if (answer.status === 200 && callId !== undefined) {
        this.accepted.set(number, callId);
        if (this.#random.next() < 0.2) this.#hangUpLater(callId);
        if (command !== undefined) this.#commandLater(callId, command);
        return true;
      }
      // A 503 or 429 says that nothing was accepted; what else may come says nothing.
      if (answer.status !== 503 && answer.status !== 429) return false;
      this.#counts.refused += 1;
      return true;
    } catch {
      this.#counts.unanswered += 1;
      return false;
    }
  }

  /** Asked again at another node where it had no answer: it is one transfer by its id. */
  #commandLater(callId: string, command: Record<string, unknown>): void {
    const transfer = async (): Promise<void> => {
      await pause(this.#random.between(100, 1_500));
      for (let tries = 0; tries < 2; tries += 1) {
        const answer = await this.#world
          .anyDialer(this.#random)
          ?.command(callId, command)
          .catch(() => undefined);
        if (answer?.status === 202) this.#counts.commanded += 1;
        if (answer !== undefined && answer.status !== 503) return;
      }
    };
    this.#keep(transfer().catch(() => undefined));
  }

  #hangUpLater(callId: string): void {
    const hangUp = async (): Promise<void> => {
      await pause(this.#random.between(0, 3_000));
      const dialer = this.#world.anyDialer(this.#random);
      if (dialer === undefined) return;
      await dialer.request('DELETE', `/api/public/bot/${dialer.botId}/calls/${callId}`);
      this.#counts.hungUp += 1;
    };
    // Where the node died meanwhile, the call ends by itself.
    this.#keep(hangUp().catch(() => undefined));
  }

  #keep(work: Promise<void>): void {
    const kept = work.finally(() => this.#underWay.delete(kept));
    this.#underWay.add(kept);
  }
}
