// A cluster whose parts fail on demand. Each node reaches the database, NATS and the SIP engine
// over separate wires, and can be killed or stopped. NATS, the engine, the receiver and the bots
// can fail for all nodes together.

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { type Cluster, startCluster } from '../support/cluster.ts';
import type { GatewayProcess } from '../support/gateway-process.ts';
import { layDatabaseWire, layWire, through, type Wire } from '../support/wire.ts';
import type { EngineDeath, Fault } from './aftermath.ts';
import { FaultyBots } from './faulty-bots.ts';
import type { Random } from './random.ts';
import { type Recogniser, startRecogniser } from './recogniser.ts';
import { knownWithinMs, leaseMs, sharedFault } from './shared-faults.ts';

const names = ['a', 'b', 'c'] as const;
type Name = (typeof names)[number];
type Wires = Readonly<Record<'database' | 'nats' | 'engine', Wire>>;

type Parts = {
  readonly cluster: Cluster;
  readonly recogniser: Recogniser;
  readonly bots: FaultyBots;
};

type Member = {
  readonly wires: Wires;
  gateway: GatewayProcess | undefined;
  /** The fault or restart that is under way on this node. Undefined if nothing is under way. */
  busy: Promise<void> | undefined;
};

const maxCallMs = 8_000;
/** A node that other nodes have declared lost exits within this time. */
const endsItselfWithinMs = 5_000;

export class FaultyCluster implements AsyncDisposable {
  readonly cluster: Cluster;
  readonly bots: FaultyBots;
  readonly engineDeaths: (EngineDeath & { backAt?: number })[] = [];
  readonly faults: (Fault & { to?: number })[] = [];
  readonly #recogniser: Recogniser;
  readonly #databaseUrl: string;
  readonly #members = new Map<Name, Member>();
  readonly #log: (line: string) => void;
  readonly #counts: Record<string, number> = {};
  /**
   * The start of the cluster, by `Date.now()`. Log lines count seconds from here, so that an
   * instant can be found in the script of the storm.
   */
  readonly startedAt = Date.now();
  /** Every process of every node, in the order in which they started. */
  readonly #processes: { readonly name: Name; readonly gateway: GatewayProcess }[] = [];
  /** The current fault of a part that all nodes share. */
  #shared: Promise<void> | undefined;

  private constructor(
    { cluster, recogniser, bots }: Parts,
    databaseUrl: string,
    log: (line: string) => void,
  ) {
    this.cluster = cluster;
    this.#recogniser = recogniser;
    this.bots = bots;
    this.#databaseUrl = databaseUrl;
    this.#log = log;
  }

  static async start(
    databaseUrl: string,
    logLevel: string,
    log: (line: string) => void,
    drachtio: string | undefined,
  ): Promise<FaultyCluster> {
    const recogniser = await startRecogniser();
    const cluster = await startCluster({
      ...{ databaseUrl, drachtio },
      voices: true,
      variables: {
        STT_PROVIDERS_FILE: recogniser.providersFile,
        NODE_LEASE_MS: String(leaseMs),
        LOG_LEVEL: logLevel,
        // Phones of the kind `stay` never hang up, so the gateway must end their calls.
        MAX_CALL_DURATION_MS: String(maxCallMs),
      },
    });
    const world = new FaultyCluster(
      { cluster, recogniser, bots: await FaultyBots.start() },
      databaseUrl,
      log,
    );
    try {
      for (const name of names) await world.#add(name);
      return world;
    } catch (error) {
      await world[Symbol.asyncDispose]();
      throw error;
    }
  }

  anyDialer(random: Random): GatewayProcess['dialer'] | undefined {
    return this.#members.get(random.pick(names))?.gateway?.dialer;
  }

  /** Returns the URL of a gateway that runs. */
  anyUrl(random: Random): string | undefined {
    return this.#members.get(random.pick(names))?.gateway?.runtime.httpUrl;
  }

  counts(): Readonly<Record<string, number>> {
    return this.#counts;
  }

  /**
   * Begins one fault and does not wait for its end. Draws all its random numbers before it waits,
   * so that one seed always gives the same script.
   */
  fault(random: Random): void {
    this.#reviveTheDead();
    const kind = random.pick(['kill', 'stop', 'cut', 'cut', 'cut', 'shared', 'shared']);
    const name = random.pick(names);
    const member = this.#members.get(name);
    if (kind === 'shared') {
      this.#shared ??= sharedFault(this, random).finally(() => {
        this.#shared = undefined;
      });
    } else if (member !== undefined && this.#othersBusy(name) < names.length - 1) {
      member.busy ??= this.#memberFault(kind, name, member, random).finally(() => {
        member.busy = undefined;
      });
    }
  }

  /** Waits for the end of all faults, starts every node that is down, and lets the bots read. */
  async calm(): Promise<void> {
    await this.#faultsOver();
    for (const [name, member] of this.#members) await this.#revive(name, member);
    this.bots.calm();
    this.#print('calm');
  }

  /**
   * Writes the log of each process: `a-1.log`, then `a-2.log` after the first restart of node a.
   */
  async writeLogs(folder: string): Promise<void> {
    await mkdir(folder, { recursive: true });
    for (const name of names) {
      const own = this.#processes.filter((process) => process.name === name);
      for (const [index, { gateway }] of own.entries()) {
        await writeFile(join(folder, `${name}-${index + 1}.log`), gateway.output());
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#faultsOver();
    await this.cluster[Symbol.asyncDispose]();
    await this.bots[Symbol.asyncDispose]();
    await this.#recogniser[Symbol.asyncDispose]();
    for (const { wires } of this.#members.values()) {
      await Promise.all(Object.values(wires).map((wire) => wire.close()));
    }
  }

  /**
   * Restarts nodes that have exited, as an operator would. A node exits when it has lost its lease,
   * and a start may have failed.
   */
  #reviveTheDead(): void {
    for (const [name, member] of this.#members) {
      const { child } = member.gateway ?? {};
      if (child !== undefined && child.exitCode === null && child.signalCode === null) continue;
      member.busy ??= this.#reviveDuringStorm(name, member).finally(() => {
        member.busy = undefined;
      });
    }
  }

  /**
   * Counts the other nodes that have a fault. One node always stays healthy, because no invariant
   * can hold without any node.
   */
  #othersBusy(name: Name): number {
    return [...this.#members].filter(([other, { busy }]) => other !== name && busy !== undefined)
      .length;
  }

  async #faultsOver(): Promise<void> {
    await Promise.all([this.#shared, ...[...this.#members.values()].map((member) => member.busy)]);
  }

  async #add(name: Name): Promise<void> {
    const { nats, engine } = this.cluster;
    const wires = {
      database: await layDatabaseWire(this.#databaseUrl),
      nats: await layWire({ host: '127.0.0.1', port: Number(new URL(nats.url).port) }),
      engine: await layWire({ host: '127.0.0.1', port: Number(new URL(engine.url).port) }),
    };
    const member: Member = { wires, gateway: undefined, busy: undefined };
    this.#members.set(name, member);
    await this.#revive(name, member);
  }

  async #revive(name: Name, member: Member): Promise<void> {
    const { child } = member.gateway ?? {};
    if (child !== undefined && child.exitCode === null && child.signalCode === null) return;
    member.gateway = undefined;
    const { nats, engine } = this.cluster;
    const gateway = await this.cluster.startNode(name, {
      DATABASE_URL: through(this.#databaseUrl, member.wires.database),
      NATS_URL: through(nats.url, member.wires.nats),
      DRACHTIO_URL: through(engine.url, member.wires.engine),
    });
    member.gateway = gateway;
    this.#processes.push({ name, gateway });
  }

  async #memberFault(
    kind: 'kill' | 'stop' | 'cut',
    name: Name,
    member: Member,
    random: Random,
  ): Promise<void> {
    const wire = kind === 'cut' ? random.pick(['database', 'nats', 'engine'] as const) : undefined;
    const isHindered = kind === 'stop' || wire === 'engine';
    const span: Fault & { to?: number } = {
      ...{ what: `${kind} ${name}`, node: name, from: Date.now() },
      ...(kind === 'kill' && { effect: 'died' }),
      ...(isHindered && { effect: 'hindered' }),
    };
    // A process that is cut off from NATS can still hang up and store that it did.
    if (wire !== 'nats') this.faults.push(span);
    if (kind === 'kill') {
      const ms = random.between(200, 4_000);
      this.count('kills', `kill ${name} for ${ms} ms`);
      await member.gateway?.kill();
      member.gateway = undefined;
      await pause(ms);
    } else if (wire === undefined) {
      const ms = random.between(500, 3 * leaseMs);
      this.count('pauses', `stop ${name} for ${ms} ms`);
      member.gateway?.child.kill('SIGSTOP');
      await pause(ms);
      member.gateway?.child.kill('SIGCONT');
      await pause(endsItselfWithinMs);
    } else {
      const ms = random.between(100, 6_000);
      this.count('cuts', `cut ${name} off from ${wire} for ${ms} ms`);
      member.wires[wire].cut();
      await pause(ms);
      member.wires[wire].heal();
    }
    await this.#reviveDuringStorm(name, member);
    span.to = Date.now() + knownWithinMs;
  }

  /**
   * Starts the node if it has exited. Counts a failed start: a part that the node needs may be
   * down.
   */
  async #reviveDuringStorm(name: Name, member: Member): Promise<void> {
    try {
      await this.#revive(name, member);
    } catch (error) {
      this.count('failedStarts', `${name} did not start: ${String(error).slice(0, 300)}`);
    }
  }

  /** Logs a fault and counts it. */
  count(kind: string, line: string): void {
    this.#counts[kind] = (this.#counts[kind] ?? 0) + 1;
    this.#print(line);
  }

  #print(line: string): void {
    this.#log(`${((Date.now() - this.startedAt) / 1_000).toFixed(1)} s  ${line}`);
  }
}
