// What must hold whatever dies: checked after the storm, on what was said to the caller, what the phones saw, what the
// stream and the receiver got. Pure. Each violation is a sentence.

import type { FarCall } from '../support/far-end.ts';
import type { BotConnection } from './faulty-bots.ts';

export type StreamEvent = {
  readonly id: string;
  readonly type: string;
  readonly time: string;
  readonly callId: string;
  readonly eventSequence: number;
};

export type Told = {
  readonly eventId: string;
  readonly callId: string;
  readonly sequence: number;
  readonly status: string;
};

export type Aftermath = {
  /** Call ids that were answered with 200, by the number that they dial. */
  readonly accepted: ReadonlyMap<string, string>;
  readonly farCalls: readonly FarCall[];
  /** Raw, as the stream holds them. */
  readonly events: readonly { readonly raw: string; readonly event: StreamEvent }[];
  /** Raw, as the receiver took them with a 2xx. */
  readonly notifications: readonly { readonly raw: string; readonly body: Told }[];
  /** Of the storm, by `Date.now()`. */
  readonly startedAt: number;
  /** When the SIP engine died. */
  readonly engineDeaths: readonly number[];
  readonly botConnections: readonly BotConnection[];
  /** The numbers of agents, and the person's that each was for. */
  readonly agents: ReadonlyMap<string, string>;
  /** In which a process may have died between a BYE and its answer, or lost that. */
  readonly faults: readonly { readonly from: number; readonly to?: number }[];
};

/** After the end of its call a phone may be up for so long. */
const hangUpWithinMs = 10_000;
/** A bot that was stopped for 9 s, or whose node was, sees the end of its call that much later. */
const botLeavesWithinMs = 25_000;
/** The engine died with the INVITE unanswered: the phone's 200 may come, and be sent again, for 32 s. */
const engineDiedWithinMs = 42_000;

export function violations(aftermath: Aftermath): readonly string[] {
  return [
    ...endsOnce(aftermath),
    ...neverTwice(aftermath),
    ...wholeOnStream(aftermath),
    ...wholeAtReceiver(aftermath),
    ...nobodyLeftUp(aftermath),
    ...hungUpOnce(aftermath),
    ...transfersOverOnce(aftermath),
    ...noBotLeft(aftermath),
    ...streamsOverOnce(aftermath),
  ];
}

const isTerminal = (type: string): boolean => /^(completed|failed)$/i.test(type);

function endsOnce({ accepted, events, notifications }: Aftermath): string[] {
  const stated = new Map<string, Set<string>>();
  for (const { event } of events) {
    if (isTerminal(event.type)) add(stated, event.callId, event.id);
  }
  const told = new Map<string, Set<string>>();
  for (const { body } of notifications) {
    if (isTerminal(body.status)) add(told, body.callId, body.eventId);
  }
  return [...accepted.values()].flatMap((callId) => {
    const [events, bodies] = [stated.get(callId)?.size ?? 0, told.get(callId)?.size ?? 0];
    return [
      ...(events === 1 ? [] : [`${callId}: ${events} terminal events on the stream`]),
      ...(bodies === 1 ? [] : [`${callId}: ${bodies} terminal notifications at the receiver`]),
    ];
  });
}

/** Of the person, or of the agent whom they were to be connected to. */
function callIdOf(
  { accepted, agents }: Pick<Aftermath, 'accepted' | 'agents'>,
  number: string,
): string | undefined {
  return accepted.get(agents.get(number) ?? number);
}

function neverTwice({ farCalls, ...known }: Aftermath): string[] {
  const byNumber = new Map<string, Set<string>>();
  for (const call of farCalls) add(byNumber, call.number, call.sipCallId);
  return [...byNumber].flatMap(([number, sipCallIds]) =>
    sipCallIds.size === 1 ? [] : [`${callIdOf(known, number)}: ${sipCallIds.size} INVITEs`],
  );
}

function wholeOnStream({ events }: Aftermath): string[] {
  const { problems, byCall } = gather(
    events.map(({ raw, event }) => ({ raw, id: event.id, callId: event.callId, item: event })),
    'on the stream',
  );
  for (const [callId, events] of byCall) {
    const sorted = events.toSorted((a, b) => a.eventSequence - b.eventSequence);
    const sequences = sorted.map((event) => event.eventSequence);
    if (sequences.some((sequence, index) => sequence !== index + 1)) {
      const story = sorted.map((event) => `${event.eventSequence} ${event.type}`).join(', ');
      problems.push(`${callId}: the stream has ${story}`);
    }
    const last = sorted.at(-1);
    if (last !== undefined && !isTerminal(last.type)) {
      problems.push(`${callId}: ${last.type} is its last event`);
    }
  }
  return problems;
}

function wholeAtReceiver({ notifications }: Aftermath): string[] {
  const { problems, byCall } = gather(
    notifications.map(({ raw, body }) => ({
      raw,
      id: body.eventId,
      callId: body.callId,
      item: body.sequence,
    })),
    'delivered',
  );
  for (const [callId, sequences] of byCall) {
    // In the order of their first arrival, which is the order that they were promised in.
    if (sequences.some((sequence, index) => sequence !== index + 1)) {
      problems.push(`${callId}: notifications ${sequences.join(' ')}`);
    }
  }
  return problems;
}

type Entry<Item> = {
  readonly raw: string;
  readonly id: string;
  readonly callId: string;
  readonly item: Item;
};

/** Each id once, by call, in the order of their first arrival. */
function gather<Item>(entries: readonly Entry<Item>[], where: string) {
  const bodies = new Map<string, string>();
  const problems: string[] = [];
  const byCall = new Map<string, Item[]>();
  for (const { raw, id, callId, item } of entries) {
    const known = bodies.get(id);
    if (known !== undefined && known !== raw) {
      problems.push(`${id}: two bodies ${where}: ${known} ${raw}`);
    }
    if (known !== undefined) continue;
    bodies.set(id, raw);
    byCall.set(callId, [...(byCall.get(callId) ?? []), item]);
  }
  return { problems, byCall };
}

function nobodyLeftUp({
  farCalls,
  events,
  startedAt,
  engineDeaths,
  ...known
}: Aftermath): string[] {
  const endedAt = new Map<string, number>();
  for (const { event } of events) {
    if (isTerminal(event.type)) endedAt.set(event.callId, Date.parse(event.time));
  }
  return farCalls.flatMap((call) => {
    const callId = callIdOf(known, call.number) ?? 'nobody';
    const over = endedAt.get(callId);
    if (over === undefined) return [];
    const unansweredWhenItDied = engineDeaths.some(
      (at) => call.invitedAt <= at && (call.acknowledgedAt ?? Number.POSITIVE_INFINITY) >= at,
    );
    const withinMs = unansweredWhenItDied ? engineDiedWithinMs : hangUpWithinMs;
    const lateMs = (call.endedAt ?? Number.POSITIVE_INFINITY) - over - withinMs;
    const at = `${((over - startedAt) / 1_000).toFixed(1)} s`;
    return lateMs > 0
      ? [
          `${callId}: its phone was up ${lateMs} ms too long after its end at ${at} (${storyOf(call, over)})`,
        ]
      : [];
  });
}

/** Where it can be told: while nothing that could lose a BYE's answer went on. */
function hungUpOnce({ farCalls, faults, startedAt, ...known }: Aftermath): string[] {
  return farCalls.flatMap(({ number, byesAt }) => {
    const [once = 0, again] = byesAt;
    if (again === undefined) return [];
    const isExcused = faults.some(
      ({ from, to = Number.POSITIVE_INFINITY }) => from <= again && once <= to,
    );
    if (isExcused) return [];
    const at = byesAt.map((one) => `${((one - startedAt) / 1_000).toFixed(1)} s`).join(', ');
    return [`${callIdOf(known, number)}: one of its phones was hung up at ${at}`];
  });
}

/** One that was answered ends with its call; where its process died, `completed` alone tells it. */
function transfersOverOnce({ events }: Aftermath): string[] {
  const ends = new Map<string, Set<string>>();
  for (const { event } of events) {
    if (event.type === 'transfer-completed') add(ends, event.callId, event.id);
  }
  return [...ends].flatMap(([callId, ids]) =>
    ids.size === 1 ? [] : [`${callId}: ${ids.size} transfers were completed`],
  );
}

/** What does not read sees nothing until the calm: then its connection must be over, too. */
function noBotLeft({ accepted, events, botConnections, startedAt }: Aftermath): string[] {
  const endedAt = new Map<string, number>();
  for (const { event } of events) {
    if (isTerminal(event.type)) endedAt.set(event.callId, Date.parse(event.time));
  }
  return botConnections.flatMap(({ bot, number, openedAt, closedAt }) => {
    const callId = accepted.get(number) ?? 'nobody';
    const over = endedAt.get(callId);
    if (over === undefined) return [];
    const where = `${callId}: its bot (${bot}, connected at ${openedAt - startedAt} ms)`;
    if (closedAt === undefined) return [`${where} is still connected`];
    const lateMs = closedAt - Math.max(over, openedAt) - botLeavesWithinMs;
    const isBlind = bot === 'deaf' || bot === 'mute' || bot === 'flood';
    return lateMs > 0 && !isBlind ? [`${where} was connected ${lateMs} ms too long`] : [];
  });
}

function streamsOverOnce({ events }: Aftermath): string[] {
  const ends = new Map<string, Set<string>>();
  for (const { event } of events) {
    if (event.type === 'stream-stopped') add(ends, event.callId, event.id);
  }
  return [...ends].flatMap(([callId, ids]) =>
    ids.size === 1 ? [] : [`${callId}: its stream stopped ${ids.size} times`],
  );
}

/** Milliseconds before and after the end of the call. */
function storyOf(call: FarCall, over: number): string {
  const steps = { invitedAt: call.invitedAt, rangAt: call.rangAt, answeredAt: call.answeredAt };
  return Object.entries({ ...steps, acknowledgedAt: call.acknowledgedAt })
    .map(([step, at]) => `${step} ${at === undefined ? 'never' : at - over}`)
    .join(', ');
}

function add(sets: Map<string, Set<string>>, key: string, value: string): void {
  const set = sets.get(key) ?? new Set<string>();
  set.add(value);
  sets.set(key, set);
}
