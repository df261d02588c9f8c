// One fault of a storm of the servers: fills up the population, lets the fault begin and end, waits
// until nothing more can come of it, and counts who was hung up.

import { setTimeout as pause } from 'node:timers/promises';
import type { FarCall } from '../../support/far-end.ts';
import { knownWithinMs } from '../shared-faults.ts';
import { isUp } from '../talking.ts';
import type { ServerFault } from './catalogue.ts';
import type { FaultReport, Ringing, Span } from './fault-report.ts';
import type { Exit, MemberName } from './members.ts';
import type { Observations } from './observations.ts';
import type { Population, Ringer, Talker, TalkerKind } from './population.ts';
import type { ServerWorld } from './server-world.ts';

export type Storm = {
  readonly world: ServerWorld;
  readonly population: Population;
  readonly observations: Observations;
};

export type Suffered = { readonly report: FaultReport; readonly problems: readonly string[] };

type Hit = {
  readonly talkers: readonly Talker[];
  readonly ringers: readonly Ringer[];
  /** The gateway of each call when the fault began. */
  readonly owners: ReadonlyMap<string, MemberName>;
  readonly span: Span;
  readonly exits: readonly Exit[];
};

export async function suffer(fault: ServerFault, storm: Storm): Promise<Suffered> {
  const { world, population, observations } = storm;
  await reviveAll(world);
  const vanished = population.vanished();
  const talkers = await population.fill();
  const owners = await ownersOf(world);
  observations.aimAt(talkers, owners);
  const ringers = await population.ring(fault.seconds);
  const exitsBefore = exitsOf(world).length;
  const span = await run(fault, world);
  const exits = exitsOf(world).slice(exitsBefore);
  const suffered = judge(fault, { talkers, ringers, owners, span, exits }, storm);
  await population.hangUp(ringers.map(({ callId }) => callId));
  const early = vanished.map(({ callId }) => `${callId}: it ended before ${fault.name} began`);
  return { ...suffered, problems: [...early, ...suffered.problems] };
}

async function run(fault: ServerFault, world: ServerWorld): Promise<Span> {
  world.log(`${fault.name} begins`);
  const { name, seconds, settleSeconds, hidesEnds, delaysHangUpMs = 0 } = fault;
  const from = Date.now();
  const hidden: ServerWorld['faults'][number] = { what: name, from, delaysHangUpMs };
  if (hidesEnds) world.faults.push(hidden);
  const { end, repair } = await fault.begin(world);
  await pause(seconds * 1_000);
  await end();
  const to = Date.now();
  world.log(`${name} ends after ${((to - from) / 1_000).toFixed(1)} s`);
  await repair?.();
  await reviveAll(world);
  await pause(settleSeconds * 1_000);
  hidden.to = Date.now() + knownWithinMs;
  return { from, to, until: Date.now() };
}

function judge(
  fault: ServerFault,
  { talkers, ringers, owners, span, exits }: Hit,
  { world, population }: Storm,
): Suffered {
  const { from, to } = span;
  const lost = population.disconnected(talkers);
  population.forget(lost);
  const phones = population.phonesOf(ringers);
  for (const { kind, callId } of lost) {
    world.log(`${fault.name} disconnected ${kind} ${callId} of ${owners.get(callId)}`);
  }
  const unexpected = lost.filter(({ callId }) => !mayDisconnect(fault, owners.get(callId)));
  return {
    report: {
      fault: fault.name,
      span,
      people: countPeople(talkers, lost),
      lastLostMs: lost.length === 0 ? undefined : Math.max(...population.endsOf(lost)) - from,
      answeredDuring: ringing(phones.filter((phone) => pickedUpBetween(phone, from, to))),
      answeredAfter: ringing(phones.filter((phone) => !pickedUpBetween(phone, from, to))),
      gatewaysExited: exits.length,
    },
    problems: [
      ...unexpected.map(({ kind, callId }) => `${callId}: ${fault.name} disconnected it (${kind})`),
      ...exits.map(({ name, output }) => `${fault.name}: gateway ${name} exited: ${output}`),
    ],
  };
}

const mayDisconnect = (fault: ServerFault, owner: MemberName | undefined): boolean =>
  fault.mayDisconnect === 'everybody' || fault.mayDisconnect === owner;

const exitsOf = ({ members }: ServerWorld): readonly Exit[] =>
  members.flatMap(({ exits }) => exits);

/** Starts the gateways that have exited, as a supervisor would. */
export async function reviveAll({ members }: ServerWorld): Promise<void> {
  for (const member of members) await member.revive();
}

/** Returns the name of the gateway that owns each call. */
async function ownersOf({ pair }: ServerWorld): Promise<ReadonlyMap<string, MemberName>> {
  const rows = await pair.primary.query<{ callId: string; name: MemberName }>(
    `select c.call_id as "callId", n.node_id as name
     from calls c join nodes n on n.owner_id = c.owner_id where c.ended_at is null`,
  );
  return new Map(rows.map(({ callId, name }) => [callId, name]));
}

function countPeople(
  talkers: readonly Talker[],
  lost: readonly Talker[],
): Record<TalkerKind, { readonly up: number; readonly lost: number }> {
  const count = (kind: TalkerKind) => ({
    up: talkers.filter((talker) => talker.kind === kind).length,
    lost: lost.filter((talker) => talker.kind === kind).length,
  });
  return { plain: count('plain'), bot: count('bot'), bridged: count('bridged') };
}

const pickedUpBetween = ({ answeredAt }: FarCall, from: number, to: number): boolean =>
  answeredAt !== undefined && answeredAt >= from && answeredAt < to;

function ringing(phones: readonly FarCall[]): Ringing {
  const hungUp = phones.filter(
    ({ answeredAt, endedAt }) => answeredAt !== undefined && endedAt !== undefined,
  );
  const upMs = hungUp.map(({ answeredAt = 0, endedAt = 0 }) => endedAt - answeredAt);
  return {
    phones: phones.length,
    connected: phones.filter(isUp).length,
    hungUp: hungUp.length,
    hungUpAfterMs: Math.max(0, ...upMs),
    unanswered: phones.filter(({ answeredAt }) => answeredAt === undefined).length,
  };
}
