// What each part of a cluster took of the CPU: this process and all that descend from it, told apart by their command line, and
// the rest of the machine. Read from /proc (Linux).

import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

export const parts = [
  'gateways',
  'SIP engine',
  'PostgreSQL',
  'nats-server',
  'dialer, callees, receiver',
  'everything else on the machine',
] as const;
type Part = (typeof parts)[number];
/** In seconds. */
export type CpuByPart = Readonly<Record<Part, number>>;

/** USER_HZ: 100 on every Linux that Node runs on. */
const ticksPerSecond = 100;

export function cpuByPart(): CpuByPart {
  const seconds = Object.fromEntries(parts.map((part) => [part, 0])) as Record<Part, number>;
  let ours = 0;
  for (const { pid, stat } of descendants()) {
    const part = partOf(pid);
    if (part === undefined) continue;
    const used = stat.used + (part === 'PostgreSQL' ? stat.usedByEnded : 0);
    seconds[part] += used / ticksPerSecond;
    ours += used / ticksPerSecond;
  }
  seconds['everything else on the machine'] = machineSeconds() - ours;
  return seconds;
}

/** Of `seconds`, in percent of one core. */
export function coreShare(before: CpuByPart, after: CpuByPart, seconds: number): CpuByPart {
  const share = (part: Part) => ((after[part] - before[part]) / seconds) * 100;
  return Object.fromEntries(parts.map((part) => [part, share(part)])) as CpuByPart;
}

export const cores = availableParallelism();

type Stat = { readonly parent: number; readonly used: number; readonly usedByEnded: number };

function descendants(): readonly { readonly pid: number; readonly stat: Stat }[] {
  const stats = new Map<number, Stat>();
  for (const name of readdirSync('/proc')) {
    const stat = /^\d+$/.test(name) ? statOf(Number(name)) : undefined;
    if (stat !== undefined) stats.set(Number(name), stat);
  }
  const isOurs = (pid: number): boolean => {
    if (pid === process.pid) return true;
    const parent = stats.get(pid)?.parent ?? 0;
    return parent > 1 && isOurs(parent);
  };
  return [...stats].filter(([pid]) => isOurs(pid)).map(([pid, stat]) => ({ pid, stat }));
}

/** Undefined: it has just ended. */
function statOf(pid: number): Stat | undefined {
  const text = read(`/proc/${pid}/stat`);
  if (text === undefined) return undefined;
  // The command name may hold spaces; fields are counted from behind its closing parenthesis.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const sum = (...indexes: readonly number[]) =>
    indexes.reduce((total, index) => total + Number(fields[index]), 0);
  return { parent: Number(fields[1]), used: sum(11, 12), usedByEnded: sum(13, 14) };
}

function partOf(pid: number): Part | undefined {
  if (pid === process.pid) return 'dialer, callees, receiver';
  const command = read(`/proc/${pid}/cmdline`)?.replaceAll('\0', ' ') ?? '';
  if (command.includes('dist/main.js')) return 'gateways';
  if (command.includes('sip-engine')) return 'SIP engine';
  if (command.includes('nats-server')) return 'nats-server';
  return /^\S*postgres\b/.test(command) ? 'PostgreSQL' : undefined;
}

function machineSeconds(): number {
  const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n', 1);
  const [user = 0, nice = 0, system = 0, , , interrupts = 0, soft = 0, stolen = 0] = line
    .split(/\s+/)
    .slice(1)
    .map(Number);
  return (user + nice + system + interrupts + soft + stolen) / ticksPerSecond;
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
