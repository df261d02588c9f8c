// Shows where the CPU time of a call goes: takes V8's CPU profiles of all threads of a gateway
// during some calls, and adds up the time by subsystem. Code that belongs to no subsystem, such as
// Node's own, counts for the subsystem that called it.

import { readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { SourceMap } from 'node:module';
import { connect } from 'node:net';
import { dirname, join, relative } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

/** The order of the report. The first pattern that matches the path of a module decides. */
const subsystems = [
  ['XState', /node_modules\/xstate\//],
  ['states and effects of a call', /src\/calls\//],
  ['drachtio-srf', /node_modules\/(drachtio-|sip-|delegates|sdp-transform|debug|only)/],
  ['SIP (src/sip)', /src\/sip\//],
  ['SIP engine', /src\/embedded\/drachtio\//],
  ['outbox and SQL', /node_modules\/pg|node_modules\/@electric-sql\/|src\/store\//],
  ['NATS', /node_modules\/@nats-io\/|src\/events\//],
  ['notifier', /node_modules\/undici\/|src\/notifier\/|node:internal\/deps\/undici/],
  ['context and lists', /src\/(interactions|live)\//],
  ['capture', /src\/capture\//],
  ['spans', /src\/tracing\/|node_modules\/@opentelemetry\//],
  [
    'HTTP API',
    /src\/(api|http|console)\/|node_modules\/(@?fastify|find-my-way|zod|ajv|avvio|pino)/,
  ],
  ['taking calls (src/dialout)', /src\/(dialout|rules|recovery)\//],
  [
    'media and detection',
    /src\/(media|amd|streams|sounds|recording)\/|node_modules\/@echogarden\//,
  ],
  ['src/app, src/lib, other packages', /src\/|node_modules\//],
] as const;

const ofNode = [
  ['garbage collection', /^\(garbage collector\)$/],
  ['timers of Node', /node:internal\/timers/],
  ['promises, ticks of Node', /node:internal\/process\/|node:internal\/(async_hooks|promise)/],
  ['sockets, streams of Node', /node:/],
  ['native code outside of functions', /^\(program\)$/],
] as const;

type CallFrame = {
  readonly functionName: string;
  readonly url: string;
  /** Counted from 0, as columns are. */
  readonly lineNumber: number;
  readonly columnNumber: number;
};
type ProfileNode = {
  readonly id: number;
  readonly callFrame: CallFrame;
  readonly hitCount: number;
  readonly children?: readonly number[];
};
type Profile = {
  readonly nodes: readonly ProfileNode[];
  /** In microseconds. */
  readonly startTime: number;
  readonly endTime: number;
};

export type Spent = {
  /** CPU time in ms, by subsystem. */
  readonly bySubsystem: ReadonlyMap<string, number>;
  /** CPU time in ms, by function with its module and line. */
  readonly byFunction: ReadonlyMap<string, number>;
  /** CPU time in ms, by module. Includes what Node and V8 do for its functions. */
  readonly byModule: ReadonlyMap<string, number>;
};

/** Functions in which a thread only waits, although V8 counts it as running. */
const waiting = /^rest .*thread-rest/;

/** @returns the time that each thread spent, by the thread's id */
export async function profileThreads(
  probeFolder: string,
  work: () => Promise<unknown>,
): Promise<ReadonlyMap<number, Spent>> {
  const prefix = 'profile-';
  const names = (await readdir(probeFolder)).filter((name) => name.startsWith(prefix));
  const profiles = await Promise.all(names.map((name) => startProfile(join(probeFolder, name))));
  await work();
  const spent = new Map<number, Spent>();
  for (const [index, stop] of profiles.entries()) {
    const threadId = Number(names[index]?.slice(prefix.length));
    spent.set(threadId, spentIn(await stop()));
  }
  return spent;
}

/** @returns a function that ends the profile and returns it */
async function startProfile(path: string): Promise<() => Promise<Profile>> {
  const socket = connect({ path, allowHalfOpen: true });
  await new Promise<void>((resolve, reject) => {
    socket.once('error', reject);
    socket.once('data', () => resolve());
  });
  socket.pause();
  return async () => {
    socket.end();
    return JSON.parse(await text(socket)) as Profile;
  };
}

function spentIn({ nodes, startTime, endTime }: Profile): Spent {
  const hits = nodes.reduce((sum, { hitCount }) => sum + hitCount, 0);
  const msPerHit = (endTime - startTime) / 1_000 / Math.max(1, hits);
  const parents = new Map<number, ProfileNode>();
  for (const node of nodes) for (const child of node.children ?? []) parents.set(child, node);
  const bySubsystem = new Map<string, number>();
  const byFunction = new Map<string, number>();
  const byModule = new Map<string, number>();
  for (const node of nodes) {
    const name = functionOf(node.callFrame);
    if (node.hitCount === 0 || name.startsWith('(idle)') || waiting.test(name)) continue;
    const { subsystem, module } = ownerOf(node, parents);
    add(bySubsystem, subsystem, node.hitCount * msPerHit);
    add(byFunction, `${name} (${subsystem})`, node.hitCount * msPerHit);
    add(byModule, module, node.hitCount * msPerHit);
  }
  return { bySubsystem, byFunction, byModule };
}

function functionOf({ functionName, ...frame }: CallFrame): string {
  return `${functionName || '(anonymous)'} ${placeOf({ functionName, ...frame })}`;
}

/** Adds the times of several profiles. */
export function sumOf(parts: readonly Spent[]): Spent {
  const sumBy = (kind: keyof Spent): ReadonlyMap<string, number> => {
    const sums = new Map<string, number>();
    for (const part of parts) for (const [name, ms] of part[kind]) add(sums, name, ms);
    return sums;
  };
  return {
    bySubsystem: sumBy('bySubsystem'),
    byFunction: sumBy('byFunction'),
    byModule: sumBy('byModule'),
  };
}

function add(sums: Map<string, number>, name: string, ms: number): void {
  sums.set(name, (sums.get(name) ?? 0) + ms);
}

type Owner = { readonly subsystem: string; readonly module: string };

/** Returns the subsystem that a sample counts for, and the innermost module in it. */
function ownerOf(leaf: ProfileNode, parents: ReadonlyMap<number, ProfileNode>): Owner {
  const stack: CallFrame[] = [];
  for (let node: ProfileNode | undefined = leaf; node !== undefined; node = parents.get(node.id))
    stack.push(node.callFrame);
  const isGarbage = leaf.callFrame.functionName === '(garbage collector)';
  const ours = isGarbage ? undefined : firstOf(subsystems, stack.map(pathOf));
  return (
    ours ??
    firstOf(
      ofNode,
      stack.map(({ url, functionName }) => (url === '' ? functionName : url)),
    ) ?? { subsystem: 'V8', module: leaf.callFrame.functionName }
  );
}

function firstOf(
  patterns: readonly (readonly [string, RegExp])[],
  modules: readonly string[],
): Owner | undefined {
  for (const module of modules) {
    const subsystem = patterns.find(([, pattern]) => pattern.test(module))?.[0];
    if (subsystem !== undefined) return { subsystem, module };
  }
  return undefined;
}

export const subsystemNames: readonly string[] = [...subsystems, ...ofNode]
  .map(([name]) => name as string)
  .concat('V8');

/** Returns the path of the module that a function comes from, before it was bundled. */
function pathOf(frame: CallFrame): string {
  return placeOf(frame).replace(/:\d+$/, '');
}

const places = new Map<string, string>();

/** Returns the path and line of a function, before it was bundled. */
function placeOf(frame: CallFrame): string {
  const { url, lineNumber, columnNumber } = frame;
  const key = `${url}:${lineNumber}:${columnNumber}`;
  const place = places.get(key) ?? findPlace(frame);
  places.set(key, place);
  return place;
}

function findPlace({ url, lineNumber, columnNumber }: CallFrame): string {
  if (!url.startsWith('file:')) return url;
  const path = fileURLToPath(url);
  const entry = sourceMapOf(path)?.findEntry(lineNumber, columnNumber);
  if (entry === undefined || !('originalSource' in entry))
    return `${withoutBuild(path)}:${lineNumber + 1}`;
  const source = join(dirname(path), entry.originalSource);
  return `${withoutBuild(source)}:${entry.originalLine + 1}`;
}

const sourceMaps = new Map<string, SourceMap | undefined>();

function sourceMapOf(path: string): SourceMap | undefined {
  if (!sourceMaps.has(path)) sourceMaps.set(path, readSourceMap(`${path}.map`));
  return sourceMaps.get(path);
}

function readSourceMap(path: string): SourceMap | undefined {
  try {
    return new SourceMap(JSON.parse(readFileSync(path, 'utf8')));
  } catch {
    // Packages that are not bundled have no map. Their paths name them.
    return undefined;
  }
}

/** Returns the path within the package or the repository, which may be anywhere. */
function withoutBuild(path: string): string {
  const inPackage = path.lastIndexOf('/node_modules/');
  const start = inPackage < 0 ? path.lastIndexOf('/src/') : inPackage;
  return start < 0 ? path : relative('/', path.slice(start));
}
