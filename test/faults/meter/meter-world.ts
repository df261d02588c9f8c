// The gateways, phones, agents and bots of the meter run, and what each of them logs.

import { setTimeout as pause } from 'node:timers/promises';
import { type Cluster, startCluster } from '../../support/cluster.ts';
import type { FarCall } from '../../support/far-end.ts';
import type { GatewayProcess } from '../../support/gateway-process.ts';
import { makeWav } from '../../support/wav.ts';
import { leaseMs } from '../shared-faults.ts';
import { MeterBots } from './meter-bots.ts';
import { campaignNames, campaigns, type MeterCall } from './meter-script.ts';
import { voiceOf } from './meter-voices.ts';

export type Death = { readonly node: string; readonly at: number };

const soundName = 'meter';
/** A killed gateway stays away this long, so that another one takes its calls over. */
const awayMs = 3 * leaseMs;

export class MeterWorld implements AsyncDisposable {
  readonly cluster: Cluster;
  readonly bots: MeterBots;
  /** Ids of the accepted calls, by the person's number. */
  readonly accepted = new Map<string, string>();
  readonly deaths: Death[] = [];
  readonly #calls = new Map<string, MeterCall>();
  readonly #nodes = new Map<string, GatewayProcess | undefined>();
  readonly #underWay = new Set<Promise<unknown>>();
  #personCalls = new Map<string, FarCall>();
  #read = 0;

  private constructor(cluster: Cluster, bots: MeterBots) {
    this.cluster = cluster;
    this.bots = bots;
  }

  /** @param databaseUrl undefined if one gateway runs with its embedded database */
  static async start(databaseUrl: string | undefined, nodes: number): Promise<MeterWorld> {
    const cluster = await startCluster({
      ...(databaseUrl !== undefined && { databaseUrl }),
      voices: true,
      variables: { NODE_LEASE_MS: String(leaseMs), LOG_LEVEL: 'warn' },
    });
    const worlds: MeterWorld[] = [];
    const bots = await MeterBots.start({
      planOf: (number) => worlds[0]?.call(number)?.bot,
      sinceAnswerMs: (number) => worlds[0]?.sinceAnswerMs(number),
    });
    const world = new MeterWorld(cluster, bots);
    worlds.push(world);
    try {
      for (let index = 0; index < nodes; index += 1) {
        const name = `node-${index + 1}`;
        world.#nodes.set(name, await cluster.startNode(name));
      }
      await world.#prepare();
      return world;
    } catch (error) {
      await world[Symbol.asyncDispose]();
      throw error;
    }
  }

  get dialer(): GatewayProcess['dialer'] | undefined {
    return this.dialers[0];
  }

  get dialers(): readonly GatewayProcess['dialer'][] {
    return [...this.#nodes.values()].flatMap((node) => node?.dialer ?? []);
  }

  call(number: string): MeterCall | undefined {
    return this.#calls.get(number);
  }

  /** The log of a phone, of a person or of an agent. */
  farCall(number: string): FarCall | undefined {
    const { calls } = this.cluster.farEnd;
    for (; this.#read < calls.length; this.#read += 1) {
      const call = calls[this.#read];
      if (call !== undefined) this.#personCalls.set(call.number, call);
    }
    return this.#personCalls.get(number);
  }

  sinceAnswerMs(number: string): number | undefined {
    const answeredAt = this.farCall(number)?.answeredAt;
    return answeredAt === undefined ? undefined : Date.now() - answeredAt;
  }

  /** Writes the scripts of the phones, and sends the request until a gateway has answered it. */
  async place(call: MeterCall, index: number): Promise<void> {
    this.#calls.set(call.number, call);
    this.#script(call);
    for (let tries = 0; ; tries += 1) {
      const dialer = this.dialers[(index + tries) % Math.max(1, this.dialers.length)];
      const answer = await dialer
        ?.post(this.#requestOf(call), { 'idempotency-key': `meter-${index}` })
        .catch(() => undefined);
      if (answer?.status === 200) {
        this.accepted.set(call.number, (answer.body as { callId: string }).callId);
        return;
      }
      if (answer !== undefined && answer.status < 500 && answer.status !== 429)
        throw new Error(`dial-out: ${answer.status} ${JSON.stringify(answer.body)}`);
      await pause(200);
    }
  }

  /** Kills a gateway, and starts it again when another one has taken over its calls. */
  async killFor(name: string): Promise<void> {
    const node = this.#nodes.get(name);
    this.#nodes.set(name, undefined);
    this.deaths.push({ node: name, at: Date.now() });
    await node?.kill();
    await pause(awayMs);
    this.#nodes.set(name, await this.cluster.startNode(name));
  }

  /** Waits for the commands that were sent. */
  async calm(): Promise<void> {
    await Promise.all(this.#underWay);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.calm();
    await this.cluster[Symbol.asyncDispose]();
    await this.bots[Symbol.asyncDispose]();
  }

  async #prepare(): Promise<void> {
    const { dialer } = this;
    await dialer?.addSound(soundName, makeWav({ samples: [loudSecond()] }));
    for (const name of campaignNames) {
      const answer = await dialer?.request('PUT', `/api/public/rules/${name}`, campaigns[name]);
      if (answer?.status !== 200) {
        throw new Error(`rules ${name}: ${answer?.status} ${JSON.stringify(answer?.body)}`);
      }
    }
  }

  #script(call: MeterCall): void {
    const { number, voice, talkMs, agent, endsMs, playsMs } = call;
    const { scripts } = this.cluster.farEnd;
    if (voice !== undefined) {
      scripts.set(number, {
        ringMs: () => 60,
        voice: voiceOf(voice),
        talkMs,
        onAnswered: () => {
          if (playsMs !== undefined) this.#later(playsMs, () => this.#play(number));
          if (endsMs !== undefined) this.#later(endsMs, () => this.#end(number));
        },
      });
    }
    if (agent === undefined || agent.kind === 'busy') return;
    const ringMs = (): number | undefined =>
      agent.kind === 'answers' ? agent.atMs - (this.sinceAnswerMs(number) ?? 0) : undefined;
    scripts.set(agent.number, { ringMs });
  }

  #requestOf({ number, campaign, voice, bot, agent, announces }: MeterCall) {
    return {
      ...{ target: `tel:+${number}`, campaign, rules: campaign, timeoutInMs: 8_000 },
      machineDetection: 'detect',
      timers: { noSpeechTimeoutMs: 2_200 },
      ...(announces && { abandonedSound: `sound:${soundName}` }),
      ...(bot !== undefined && voice !== undefined && { stream: { url: this.bots.url(number) } }),
      ...(agent !== undefined && {
        bridge: {
          ...{ to: `tel:+${agent.number}`, on: 'answered', mode: 'bridge' },
          ...{ timeoutMs: 6_000, onFailure: 'stay', keepStream: true },
        },
      }),
    };
  }

  #later(ms: number, work: () => Promise<unknown>): void {
    const done = pause(ms)
      .then(work)
      .catch(() => undefined)
      .finally(() => this.#underWay.delete(done));
    this.#underWay.add(done);
  }

  async #play(number: string): Promise<void> {
    const callId = this.accepted.get(number);
    const command = { command: 'play', sound: `sound:${soundName}`, id: `play-${number}` };
    if (callId !== undefined) await this.dialer?.command(callId, command);
  }

  async #end(number: string): Promise<void> {
    const callId = this.accepted.get(number);
    if (callId !== undefined) await this.dialer?.end(callId);
  }
}

function loudSecond(): Int16Array {
  return Int16Array.from({ length: 8_000 }, (_, index) => 8_000 * Math.sin(index / 2));
}
