// A line for each server that the gateway depends on, shown by `/ready`, the console and the log.
// The line says in words what the server's state affects now.

/** `node`: a gateway process; `carrier`: a trunk with its gateways; `disk`: DATA_DIR's disk. */
export type ServerKind =
  | 'database'
  | 'nats'
  | 'sip-engine'
  | 'node'
  | 'carrier'
  | 'disk'
  | 'recordings';

/**
 * - `up`: it works.
 * - `draining`: a node that is shutting down, so nothing is wrong.
 * - `impaired`: it responds, but slowly or only in part.
 * - `away`: it doesn't respond, or nothing can use it.
 * - `unknown`: we can't find out, because that needs another server that is away.
 */
export type ServerState = 'up' | 'draining' | 'impaired' | 'away' | 'unknown';

export type ServerLine = {
  /** Stays the same as long as the server is the same. Isn't shown to people. */
  readonly id: string;
  readonly kind: ServerKind;
  readonly name: string;
  readonly state: ServerState;
  /** What works differently now because of the server's state; undefined if nothing does. */
  readonly affects?: string;
  /** For operators only, because it may contain addresses and the server's own words. */
  readonly detail?: string;
  /** Since when the server has been in this state. Default: since we first saw the state. */
  readonly since?: Date;
};

export type ServerStatus = ServerLine & { readonly since: Date };

/** A line for `/ready`, whose response is public. It contains no address, node or trunk. */
export type PublicServer = {
  readonly name: string;
  readonly state: ServerState;
  readonly since: string;
  readonly affects?: string;
};

/** Returns true if an operator doesn't have to do anything. */
export function isFine({ state }: Pick<ServerLine, 'state'>): boolean {
  return state === 'up' || state === 'draining';
}

/**
 * Returns the lines without anything that only operators may know. All nodes become one line, and
 * so do all trunks, because their names are internal.
 */
export function publicServers(servers: readonly ServerStatus[]): readonly PublicServer[] {
  const named = servers.filter(({ kind }) => kind !== 'node' && kind !== 'carrier');
  return [
    ...named.map(({ name, state, since, affects }) => ({
      ...{ name, state, since: since.toISOString() },
      ...(affects === undefined ? {} : { affects }),
    })),
    ...summaryOf(
      'Gateways',
      servers.filter(({ kind }) => kind === 'node'),
    ),
    ...summaryOf(
      'Trunks',
      servers.filter(({ kind }) => kind === 'carrier'),
    ),
  ];
}

function summaryOf(name: string, servers: readonly ServerStatus[]): readonly PublicServer[] {
  if (servers.length === 0) return [];
  const troubled = servers.filter((server) => !isFine(server));
  if (troubled.length === 0) {
    const newest = Math.max(...servers.map(({ since }) => since.getTime()));
    return [{ name, state: 'up', since: new Date(newest).toISOString() }];
  }
  const oldest = Math.min(...troubled.map(({ since }) => since.getTime()));
  const areAll = (state: ServerState): boolean => servers.every((one) => one.state === state);
  const state = (['away', 'unknown'] as const).find(areAll) ?? 'impaired';
  return [
    {
      ...{ name, state, since: new Date(oldest).toISOString() },
      affects: `${troubled.length} of ${servers.length} ${troubled.length === 1 ? 'has' : 'have'} a problem.`,
    },
  ];
}
