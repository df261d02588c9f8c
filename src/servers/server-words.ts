// Puts the facts about the servers into words: one line for each server, with what its state
// affects now. The words say what people who call or get called notice, not what the code does.

import type { NatsStatus } from '../events/nats-status.ts';
import type { NodeRow } from '../store/nodes.ts';
import type { DiskSpace } from './disk-space.ts';
import type { RecordingStoreFacts, ServerFacts } from './server-facts.ts';
import type { ServerLine } from './server-line.ts';

/** If NATS rejects an event for this long, it's full or stalled, and retries don't help. */
const failingAfterMs = 10_000;
/** With less free space than this, an operator has to act within hours. */
const lowDisk = { share: 0.05, bytes: 500_000_000 } as const;

type Stateless = Pick<ServerLine, 'id' | 'kind' | 'name'>;
type State = Pick<ServerLine, 'state' | 'affects'>;

export function serverLines(facts: ServerFacts, now: Date): readonly ServerLine[] {
  return [
    databaseLine(facts.database),
    natsLine(facts.nats, now),
    ...engineLines(facts.engines),
    ...nodeLines(facts),
    ...carrierLines(facts.gateways),
    ...(facts.recordingStore === undefined ? [] : [recordingLine(facts.recordingStore)]),
    ...(facts.disk === undefined ? [] : [diskLine(facts.disk, facts.database.isEmbedded)]),
  ];
}

function databaseLine({ isEmbedded, condition, roundTripMs }: ServerFacts['database']): ServerLine {
  const name = isEmbedded ? 'Embedded database' : 'PostgreSQL';
  const line: Stateless = { id: 'database', kind: 'database', name };
  const outage =
    'Calls that are up continue. Dial-out requests are rejected, no call is dialled, and a phone that answers now is hung up. Events and notifications wait.';
  switch (condition) {
    case 'up':
      return { ...line, state: 'up' };
    case 'slow':
      return {
        ...line,
        state: 'impaired',
        affects: `It takes ${seconds(roundTripMs ?? 0)} to respond, so requests, calls, events and notifications are delayed.`,
      };
    case 'read-only':
      return { ...line, state: 'away', affects: `It is read-only. ${outage}` };
    case 'away':
      return { ...line, state: 'away', affects: outage };
    case 'unknown':
      return { ...line, state: 'unknown' };
  }
}

/** Returns true if NATS is connected, but hasn't accepted an event for a while. */
function isNatsRefusing({ failingSince }: Pick<NatsStatus, 'failingSince'>, now: Date): boolean {
  return failingSince !== undefined && now.getTime() - failingSince.getTime() >= failingAfterMs;
}

/** Returns true if NATS is connected, but stores no events or lacks a stream. */
export function isNatsImpaired(
  status: Pick<NatsStatus, 'failingSince' | 'streamsAway'>,
  now: Date,
): boolean {
  return isNatsRefusing(status, now) || status.streamsAway.length > 0;
}

function natsLine(nats: ServerFacts['nats'], now: Date): ServerLine {
  const name = nats.isEmbedded ? 'Embedded NATS' : 'NATS';
  return { id: 'nats', kind: 'nats', name, ...natsState(nats, now) };
}

function natsState(nats: ServerFacts['nats'], now: Date): Omit<ServerLine, keyof Stateless> {
  if (!nats.isConnected) return natsAway(nats);
  const waiting = backlogWords(nats);
  if (isNatsRefusing(nats, now)) {
    return {
      state: 'impaired',
      affects: `It stores no events, because it is full or stalled. Calls continue. ${waiting}`,
      ...(nats.failingSince === undefined ? {} : { since: nats.failingSince }),
      ...(nats.failure === undefined ? {} : { detail: nats.failure }),
    };
  }
  if (nats.streamsAway.length > 0) {
    return {
      state: 'impaired',
      affects: `${count(nats.streamsAway.length, 'stream')} can't be used. Calls continue. ${waiting}`,
      detail: `${nats.streamsAway.join(', ')}${silentServers(nats)}`,
    };
  }
  const few = nats.streamsWithFewerReplicas.map(
    ({ stream, replicas, wanted }) => `${stream} has ${replicas} of ${count(wanted, 'replica')}`,
  );
  return { state: 'up', ...(few.length === 0 ? {} : { detail: few.join(', ') }) };
}

function silentServers({ serversAway }: Pick<NatsStatus, 'serversAway'>): string {
  return serversAway.length === 0 ? '' : `; no response from ${serversAway.join(', ')}`;
}

function natsAway(nats: ServerFacts['nats']): Omit<ServerLine, keyof Stateless> {
  const { server, disconnectedSince, isEmbedded } = nats;
  const commands =
    " Commands for another gateway's calls are rejected, and waiting calls may start a second late.";
  return {
    state: 'away',
    affects: `Calls continue. ${backlogWords(nats)}${isEmbedded ? '' : commands}`,
    detail: `last connected to ${server}`,
    ...(disconnectedSince === undefined ? {} : { since: disconnectedSince }),
  };
}

function backlogWords({ waitingEvents, oldestWaitingMs }: ServerFacts['nats']): string {
  if (waitingEvents === 0) return 'Events will wait.';
  const oldest = seconds(oldestWaitingMs);
  return `Events wait (${waitingEvents.toLocaleString('en')}; the oldest for ${oldest}).`;
}

function engineLines({ areDrachtio, all }: ServerFacts['engines']): readonly ServerLine[] {
  const isAnyUp = all.some(({ isUp }) => isUp);
  const affects = isAnyUp
    ? 'Calls on it were cut off. New calls use the other engines.'
    : 'Calls on it were cut off, and no call can be dialled until it is back.';
  const nameOf = (index: number): string => {
    if (!areDrachtio) return 'SIP engine';
    return all.length === 1 ? 'drachtio' : `drachtio ${index + 1}`;
  };
  return all.map(({ engine, isUp }, index) => ({
    id: `sip-engine ${engine}`,
    kind: 'sip-engine',
    name: nameOf(index),
    ...(isUp ? { state: 'up' } : { state: 'away', affects }),
    ...(areDrachtio ? { detail: engine } : {}),
  }));
}

const unreadable: State = {
  state: 'unknown',
  affects: "Its state can't be read while PostgreSQL is away.",
};

function nodeLines({ thisNode, nodes }: ServerFacts): readonly ServerLine[] {
  const others = nodes.rows.filter(({ ownerId }) => ownerId !== thisNode.ownerId);
  return [
    thisNodeLine(thisNode),
    ...others.map((row) => ({
      id: `node ${row.ownerId}`,
      kind: 'node' as const,
      name: `Gateway ${row.nodeId}`,
      ...(nodes.isCurrent ? nodeState(row) : unreadable),
    })),
  ];
}

function thisNodeLine({
  ownerId,
  nodeId,
  calls,
  isDraining,
  lease,
}: ServerFacts['thisNode']): ServerLine {
  const line: Stateless = { id: `node ${ownerId}`, kind: 'node', name: `Gateway ${nodeId}` };
  if (!lease.isHeld) {
    return {
      ...line,
      state: 'impaired',
      affects:
        'Its lease has run out. Its calls continue, but it dials no calls and publishes no events until the lease is renewed.',
    };
  }
  return { ...line, ...(isDraining ? drainingState(calls) : { state: 'up' }), detail: 'this one' };
}

function nodeState({ state, calls }: NodeRow): State {
  switch (state) {
    case 'up':
      return { state: 'up' };
    case 'draining':
      return drainingState(calls);
    case 'late':
      return {
        state: 'impaired',
        affects: `It is late to renew its lease. Unless it answers the other gateways, they end its ${count(calls, 'call')}.`,
      };
    case 'lost':
      return {
        state: 'away',
        affects:
          calls === 0
            ? 'It is gone, and its calls have ended.'
            : `It is gone. Another gateway is ending its ${count(calls, 'call')}.`,
      };
  }
}

function drainingState(calls: number): State {
  const rest = calls === 0 ? '' : ` Its ${count(calls, 'call')} can finish.`;
  return { state: 'draining', affects: `It is shutting down and takes no new calls.${rest}` };
}

function carrierLines(gateways: ServerFacts['gateways']): readonly ServerLine[] {
  const trunks = new Map<string, { up: number; down: string[] }>();
  for (const { trunk, gateway, isUp } of gateways) {
    const known = trunks.get(trunk) ?? { up: 0, down: [] };
    if (isUp) known.up += 1;
    else known.down.push(gateway);
    trunks.set(trunk, known);
  }
  return [...trunks].map(([trunk, { up, down }]) => ({
    id: `carrier ${trunk}`,
    kind: 'carrier',
    name: `Trunk ${trunk}`,
    ...carrierState(up, down.length),
    ...(down.length === 0 ? {} : { detail: down.join(', ') }),
  }));
}

function carrierState(up: number, down: number): State {
  if (down === 0) return { state: 'up' };
  if (up === 0) {
    return {
      state: 'away',
      affects: 'Its gateways do not respond. Calls still try them, but most of these calls fail.',
    };
  }
  return {
    state: 'impaired',
    affects: `${down} of its ${up + down} gateways do not respond. Calls try the others first.`,
  };
}

function recordingLine(facts: RecordingStoreFacts): ServerLine {
  const { name, isKnown, fault, since, waiting } = facts;
  const line: Stateless = { id: 'recordings', kind: 'recordings', name: 'Store of recordings' };
  if (!isKnown) return { ...line, state: 'unknown', detail: name };
  if (fault === undefined) return { ...line, state: 'up', detail: name };
  return {
    ...{ ...line, state: 'away', detail: `${name}: ${fault}` },
    ...(since === undefined ? {} : { since }),
    affects: `Calls are not affected, and are still recorded. ${count(waiting, 'recording')} of this gateway ${waiting === 1 ? 'waits' : 'wait'} on its disk, for 24 h at most.`,
  };
}

function diskLine({ freeBytes, sizeBytes }: DiskSpace, isEmbedded: boolean): ServerLine {
  const line: Stateless = { id: 'disk', kind: 'disk', name: 'Disk of DATA_DIR' };
  const share = sizeBytes === 0 ? 0 : freeBytes / sizeBytes;
  if (share >= lowDisk.share && freeBytes >= lowDisk.bytes) return { ...line, state: 'up' };
  const use = isEmbedded
    ? 'Without space, the embedded database and NATS stop, and so do all calls.'
    : "Without space, the gateway can't start again.";
  return {
    ...line,
    state: 'impaired',
    affects: `${(freeBytes / 1e9).toFixed(1)} GB (${Math.floor(share * 100)}%) is free. ${use}`,
  };
}

function seconds(ms: number): string {
  return ms < 10_000 ? `${(ms / 1_000).toFixed(1)} s` : `${Math.round(ms / 1_000)} s`;
}

function count(number: number, word: string): string {
  return `${number.toLocaleString('en')} ${word}${number === 1 ? '' : 's'}`;
}
