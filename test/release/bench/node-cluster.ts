// A cluster for the benches of several nodes, with its own PostgreSQL (fsync on).

import { type Cluster, startCluster } from '../../support/cluster.ts';
import { eventually } from '../../support/eventually.ts';
import { type FarCall, numberFor } from '../../support/far-end.ts';
import type { GatewayProcess } from '../../support/gateway-process.ts';
import { startPostgres } from '../../support/postgres-server.ts';
import { type TimedReceiver, timed } from './timed-receiver.ts';

const mediaPortsEach = 10_000;

export type Dialled = { readonly callId: string; readonly number: string };

export type BenchCluster = AsyncDisposable & {
  readonly cluster: Cluster;
  readonly nodes: Map<string, GatewayProcess>;
  readonly receiver: TimedReceiver;
  readonly databaseUrl: string;
  startNode(name: string): Promise<void>;
  /** Places a call through each node in turn, to a number that no other call has. */
  dial(...behaviour: readonly [Parameters<typeof numberFor>[0], number]): Promise<Dialled>;
  farCalls(): ReadonlyMap<string, FarCall>;
  /** The count of numbers that were called more than once. It must be 0. */
  calledTwice(): number;
};

export async function startBenchCluster(
  names: readonly string[],
  options: {
    readonly trunk?: readonly string[];
    /**
     * Each node has as many ports as by default, counted from this one. The ports of ended calls
     * are not used again for a while. Default: the usual ports of the tests.
     */
    readonly firstMediaPort?: number;
  } = {},
): Promise<BenchCluster> {
  const postgres = await startPostgres({ fsync: true });
  let cluster: Cluster | undefined;
  const dispose = async (): Promise<void> => {
    await cluster?.[Symbol.asyncDispose]();
    await postgres.stop();
  };
  try {
    const started = await startCluster({
      databaseUrl: postgres.url,
      trunk: options.trunk ?? [],
    });
    cluster = started;
    const nodes = new Map<string, GatewayProcess>();
    const startNode = async (name: string): Promise<void> => {
      const ports = mediaPorts(options.firstMediaPort, names.indexOf(name));
      nodes.set(name, await started.startNode(name, ports));
    };
    for (const name of names) await startNode(name);
    const ready = async (node: GatewayProcess) =>
      (await node.dialer.request('GET', '/ready')).status === 200;
    for (const node of nodes.values()) await eventually(() => ready(node), 'a node is ready');
    return {
      cluster: started,
      nodes,
      receiver: timed(started.receiver),
      databaseUrl: postgres.url,
      startNode,
      dial: dialer(started, nodes),
      farCalls: () => new Map(started.farEnd.calls.map((call) => [call.number, call])),
      calledTwice: () => {
        const numbers = started.farEnd.calls.map((call) => call.number);
        return numbers.length - new Set(numbers).size;
      },
      [Symbol.asyncDispose]: dispose,
    };
  } catch (error) {
    await dispose();
    throw error;
  }
}

function mediaPorts(first: number | undefined, index: number): Record<string, string> {
  if (first === undefined) return {};
  const from = first + index * mediaPortsEach;
  return { MEDIA_PORT_MIN: String(from), MEDIA_PORT_MAX: String(from + mediaPortsEach - 1) };
}

function dialer(
  cluster: Cluster,
  nodes: ReadonlyMap<string, GatewayProcess>,
): BenchCluster['dial'] {
  let index = 0;
  return async (...behaviour) => {
    index += 1;
    const number = numberFor(...behaviour, index);
    const node = [...nodes.values()][index % nodes.size];
    if (node === undefined) throw new Error('no node');
    const target = `tel:+${number}`;
    const { callId } = await node.dialer.dial({ target, notifyurl: cluster.receiver.url });
    return { callId, number };
  };
}
