// The faults of a run, one after the other.

import { setTimeout as pause } from 'node:timers/promises';
import { eventually } from '../../support/eventually.ts';
import { leaseMs } from '../shared-faults.ts';
import type { BucketState } from './bucket-proxy.ts';
import type { RecordingWorld } from './recording-world.ts';

export const recordingFaults = [
  'store-away',
  'slow-store',
  'revoked',
  'disk-full',
  'kill',
  'kill-at-upload',
] as const;
export type RecordingFaultKind = (typeof recordingFaults)[number];

export type FaultSpan = {
  readonly kind: RecordingFaultKind;
  /** By `Date.now()`. */
  readonly from: number;
  readonly to: number;
  /** The gateway that was killed. */
  readonly node?: string;
};

/** The requests of a recording together take less than the minute after which they fail. */
const slowMs = 3_000;
const verySlowMs = 15_000;
/** A killed gateway stays away until the others know that it is lost. */
const awayMs = 3 * leaseMs;

/** Runs a fault for this time. */
export async function suffer(
  world: RecordingWorld,
  kind: RecordingFaultKind,
  forMs: number,
): Promise<FaultSpan> {
  const from = Date.now();
  const node = await runFault(world, kind, forMs);
  return { kind, from, to: Date.now(), ...(node === undefined ? {} : { node }) };
}

async function runFault(
  world: RecordingWorld,
  kind: RecordingFaultKind,
  forMs: number,
): Promise<string | undefined> {
  const { disk } = world.parts;
  switch (kind) {
    case 'store-away':
      return await withStore(world, { kind: 'away' }, forMs);
    case 'slow-store':
      return await withStore(world, { kind: 'slow', ms: slowMs }, forMs);
    case 'revoked':
      return await withStore(world, { kind: 'revoked' }, forMs);
    case 'disk-full':
      await disk?.fill();
      await pause(forMs);
      await disk?.empty();
      return undefined;
    case 'kill':
      return await killOne(world, [...world.nodes.keys()].at(-1) ?? '');
    case 'kill-at-upload':
      return await killAtUpload(world);
  }
}

async function withStore(world: RecordingWorld, state: BucketState, forMs: number) {
  world.parts.proxy.state = state;
  await pause(forMs);
  world.parts.proxy.state = { kind: 'up' };
  return undefined;
}

async function killOne(world: RecordingWorld, name: string): Promise<string> {
  await world.kill(name);
  await pause(awayMs);
  await world.startNode(name);
  return name;
}

/** Kills a gateway in the middle of an upload. */
async function killAtUpload(world: RecordingWorld): Promise<string> {
  const { proxy } = world.parts;
  proxy.state = { kind: 'slow', ms: verySlowMs };
  const uploading = (): string | undefined =>
    [...world.nodes.keys()].find((name) => proxy.uploadsOf(name) > 0);
  await eventually(() => uploading() !== undefined, 'a gateway uploads a recording', 60_000);
  const name = uploading() ?? '';
  await world.kill(name);
  proxy.state = { kind: 'up' };
  await pause(awayMs);
  await world.startNode(name);
  return name;
}
