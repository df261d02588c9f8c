// Faults of the parts that all nodes share: NATS, the SIP engine, the receiver and the bots.

import { setTimeout as pause } from 'node:timers/promises';
import type { Cluster } from '../support/cluster.ts';
import type { EngineDeath, Fault } from './aftermath.ts';
import type { FaultyBots } from './faulty-bots.ts';
import type { Random } from './random.ts';

type World = {
  readonly cluster: Cluster;
  readonly bots: FaultyBots;
  readonly faults: (Fault & { to?: number })[];
  readonly engineDeaths: (EngineDeath & { backAt?: number })[];
  count(kind: string, line: string): void;
};

export const leaseMs = 3_000;
/**
 * Time within which another node takes over and ends orphaned calls after a fault. That node may
 * first have to wait one lease until it counts as steady.
 */
export const knownWithinMs = 3 * leaseMs;

const kinds = ['nats-kill', 'nats-stop', 'engine', 'receiver', 'bots-kill', 'bots-stop'] as const;

export async function sharedFault(world: World, random: Random): Promise<void> {
  const kind = random.pick(kinds);
  const ms = random.between(200, 3_000);
  switch (kind) {
    case 'nats-kill':
    case 'nats-stop':
      return await natsFault(world, kind, ms);
    case 'engine':
      return await engineFault(world, ms);
    case 'receiver':
      return await receiverFault(world, ms);
    case 'bots-kill':
      return await botsKilled(world, ms);
    case 'bots-stop':
      return await botsStopped(world, ms);
  }
}

async function natsFault(world: World, kind: 'nats-kill' | 'nats-stop', ms: number): Promise<void> {
  const { pid } = world.cluster.nats;
  if (kind === 'nats-kill') {
    world.count('natsKills', 'kill nats-server');
    if (pid !== undefined) process.kill(pid, 'SIGKILL');
    await pause(ms);
    return;
  }
  world.count('natsPauses', `stop nats-server for ${ms} ms`);
  if (pid !== undefined) process.kill(pid, 'SIGSTOP');
  await pause(ms);
  if (pid !== undefined) process.kill(pid, 'SIGCONT');
}

async function engineFault(world: World, ms: number): Promise<void> {
  const { engine } = world.cluster;
  world.count('engineKills', `kill the SIP engine for ${ms} ms`);
  const span: Fault & { to?: number } = { what: 'kill the SIP engine', from: Date.now() };
  world.faults.push(span);
  const death: EngineDeath & { backAt?: number } = { at: span.from };
  world.engineDeaths.push(death);
  await engine.kill();
  await pause(ms);
  await engine.start();
  death.backAt = Date.now();
  span.to = Date.now() + knownWithinMs;
}

async function receiverFault(world: World, ms: number): Promise<void> {
  const { receiver } = world.cluster;
  world.count('receiverFailures', `the receiver refuses for ${ms} ms`);
  receiver.answerWith(() => 503);
  await pause(ms);
  receiver.answerWith(() => 200);
}

async function botsKilled(world: World, ms: number): Promise<void> {
  world.count('botKills', `kill the bots for ${ms} ms`);
  await world.bots.kill();
  await pause(ms);
  await world.bots.revive();
}

/** Stops the bots for up to 9 s, longer than any other shared fault. */
async function botsStopped(world: World, ms: number): Promise<void> {
  world.count('botPauses', `stop the bots for ${3 * ms} ms`);
  world.bots.stop();
  await pause(3 * ms);
  world.bots.resume();
}
