// The two gateways of a storm of the servers. Each reaches each server over a wire of its own, can
// be killed, and is started again.

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Cluster } from '../../support/cluster.ts';
import type { GatewayProcess } from '../../support/gateway-process.ts';
import { layDatabaseWire, layWire, through, type Wire } from '../../support/wire.ts';

export type MemberName = 'a' | 'b';

type Wires = {
  readonly database: Wire;
  readonly engine: Wire;
  /** One per NATS server. */
  readonly nats: readonly Wire[];
};

/** The URLs of the servers, without the wires. */
export type ServerUrls = {
  readonly database: string;
  readonly engine: string;
  readonly nats: readonly string[];
};

/** A gateway that exited although the test did not end it. */
export type Exit = { readonly name: MemberName; readonly output: string };

export type MemberOptions = {
  readonly cluster: Cluster;
  readonly urls: ServerUrls;
  readonly log: (line: string) => void;
};

/** How much of its log explains why a gateway exited. */
const tailLength = 1_500;

export class Member implements AsyncDisposable {
  readonly name: MemberName;
  readonly wires: Wires;
  readonly exits: Exit[] = [];
  readonly #cluster: Cluster;
  readonly #urls: ServerUrls;
  readonly #log: (line: string) => void;
  /** Every process of this gateway, in the order in which they started. */
  readonly #processes: GatewayProcess[] = [];
  #gateway: GatewayProcess | undefined;

  private constructor(name: MemberName, wires: Wires, { cluster, urls, log }: MemberOptions) {
    this.name = name;
    this.wires = wires;
    this.#cluster = cluster;
    this.#urls = urls;
    this.#log = log;
  }

  static async create(name: MemberName, options: MemberOptions): Promise<Member> {
    const { database, engine, nats } = options.urls;
    const wires = {
      database: await layDatabaseWire(database),
      engine: await layWire(addressOf(engine)),
      nats: await Promise.all(nats.map((url) => layWire(addressOf(url)))),
    };
    return new Member(name, wires, options);
  }

  /** The process that runs. Undefined after `kill`. */
  get gateway(): GatewayProcess | undefined {
    return this.#gateway;
  }

  /** Starts the gateway, unless it runs. */
  async revive(): Promise<void> {
    const { child } = this.#gateway ?? {};
    if (child !== undefined && child.exitCode === null && child.signalCode === null) return;
    this.#gateway = undefined;
    const { wires, name } = this;
    const urls = this.#urls;
    const gateway = await this.#cluster.startNode(name, {
      DATABASE_URL: through(urls.database, wires.database),
      DRACHTIO_URL: through(urls.engine, wires.engine),
      NATS_URL: wires.nats.map((wire, index) => through(urls.nats[index] ?? '', wire)).join(','),
    });
    gateway.child.once('exit', (code) => {
      if (this.#gateway !== gateway) return;
      this.exits.push({ name, output: gateway.output().slice(-tailLength) });
      this.#log(`gateway ${name} exited with ${code}`);
    });
    this.#processes.push(gateway);
    this.#gateway = gateway;
  }

  async kill(): Promise<void> {
    const gateway = this.#gateway;
    this.#gateway = undefined;
    await gateway?.kill();
  }

  /** Writes the log of each process: `a-1.log`, then `a-2.log` after the first restart. */
  async writeLogs(folder: string): Promise<void> {
    await mkdir(folder, { recursive: true });
    for (const [index, gateway] of this.#processes.entries()) {
      await writeFile(join(folder, `${this.name}-${index + 1}.log`), gateway.output());
    }
  }

  /** Removes the wires. The cluster ends the processes. */
  async [Symbol.asyncDispose](): Promise<void> {
    const { database, engine, nats } = this.wires;
    await Promise.all([database, engine, ...nats].map((wire) => wire.close()));
  }
}

const addressOf = (url: string) => ({ host: '127.0.0.1', port: Number(new URL(url).port) });
