// The meter run: real gateways dial thousands of calls of three campaigns to phones that log what
// they sent, heard and when they left. Bots come late or never speak, agents do not answer, people
// leave first, and machines are taken for people. Afterwards, the figures of the campaigns are
// compared with a second count from those logs (`recount.ts`), call by call.
//
// On a busy machine, timers are late, and a call may be decided within the margin that the script
// keeps from the end of the two seconds. The clocks may then disagree about it, so its stored
// outcome is taken. The report counts such calls, and how many of them disagree.

import { setTimeout as pause } from 'node:timers/promises';
import { request as undiciRequest } from 'undici';
import { randomFrom } from '../random.ts';
import { eventsOnStream, type StoredEvent } from '../stream-dump.ts';
import { type CampaignName, campaignNames, drawCall, marginMs } from './meter-script.ts';
import { MeterWorld } from './meter-world.ts';
import {
  type CallLogs,
  type Formula,
  formulas,
  type Outcome,
  outcomesAfterDeath,
  type Recounted,
  recount,
} from './recount.ts';

export type MeterOptions = {
  readonly seed: number;
  readonly calls: number;
  readonly callsPerSecond: number;
  readonly gateways: number;
  /** How many gateways are killed during the run, one after the other. */
  readonly kills: number;
  /** undefined if one gateway runs with its embedded database. */
  readonly databaseUrl: string | undefined;
  readonly log: (line: string) => void;
};

export type MeterReport = {
  readonly violations: readonly string[];
  readonly counts: Readonly<Record<string, number>>;
};

/** A record of the export, as far as this run reads it. */
type MeterRecord = {
  readonly callId: string;
  readonly campaign: string;
  readonly dialedAt?: string;
  readonly ftcOutcome?: Outcome;
  readonly ofcomOutcome?: Outcome;
};

const settledWithinMs = 120_000;
/** What a gateway decided this shortly before it was killed may not have been stored. */
const storedWithinMs = 700;

export async function runMeter(options: MeterOptions): Promise<MeterReport> {
  await using world = await MeterWorld.start(options.databaseUrl, options.gateways);
  const started = Date.now();
  await dialAll(world, options);
  const records = await untilRecorded(world, options);
  options.log(`${((Date.now() - started) / 1_000).toFixed(0)} s for ${records.length} calls`);
  const events = await eventsOnStream(world.cluster.nats.url);
  return await compare(world, records, events, options.log);
}

async function dialAll(world: MeterWorld, options: MeterOptions): Promise<void> {
  const { calls, callsPerSecond, gateways, kills, log } = options;
  const random = randomFrom(options.seed);
  const placing: Promise<void>[] = [];
  const killing: Promise<void>[] = [];
  const startedAt = performance.now();
  for (let index = 0; index < calls; index += 1) {
    placing.push(world.place(drawCall(random, index), index));
    const kill = Array.from({ length: kills }, (_, place) => place + 1).find(
      (place) => index === Math.floor((calls * place) / (kills + 1)),
    );
    if (kill !== undefined) {
      const name = `node-${(kill % gateways) + 1}`;
      log(`${index} calls placed: ${name} is killed`);
      killing.push(world.killFor(name));
    }
    if (index % 500 === 499) log(`${index + 1} calls placed, ${world.cluster.farEnd.up} phones up`);
    await pause(
      Math.max(0, startedAt + ((index + 1) * 1_000) / callsPerSecond - performance.now()),
    );
  }
  await Promise.all([...placing, ...killing]);
  await world.calm();
}

/** Waits until every accepted call has its record. */
async function untilRecorded(
  world: MeterWorld,
  { log }: MeterOptions,
): Promise<readonly MeterRecord[]> {
  const startedAt = performance.now();
  for (;;) {
    const records = await readRecords(world);
    if (records.length >= world.accepted.size) return records;
    if (performance.now() - startedAt > settledWithinMs) {
      log(`gave up waiting: ${records.length} of ${world.accepted.size} calls have a record`);
      return records;
    }
    await pause(2_000);
  }
}

async function readRecords({ dialer }: MeterWorld): Promise<readonly MeterRecord[]> {
  if (dialer === undefined) throw new Error('no gateway runs');
  const { body } = await undiciRequest(`${dialer.httpUrl}/api/public/records?format=ndjson`, {
    headers: { auth: dialer.token },
  });
  const lines = (await body.text()).trimEnd().split('\n');
  return lines.slice(0, -1).map((line) => JSON.parse(line) as MeterRecord);
}

type Tally = Record<'answeredByPerson' | 'abandoned' | 'connected', number>;

async function figuresOf(
  { dialer }: MeterWorld,
  campaign: string,
): Promise<Readonly<Record<Formula, Tally>>> {
  const answer = await dialer?.request('GET', `/api/public/campaigns/${campaign}`);
  const body = answer?.body as unknown as Record<Formula, { readonly windows: readonly Tally[] }>;
  const sum = (formula: Formula): Tally => tallyOf(body[formula].windows);
  return { ftc: sum('ftc'), ofcom: sum('ofcom') };
}

function tallyOf(windows: readonly Tally[]): Tally {
  const total: Tally = { answeredByPerson: 0, abandoned: 0, connected: 0 };
  for (const window of windows) {
    for (const name of ['answeredByPerson', 'abandoned', 'connected'] as const) {
      total[name] += window[name];
    }
  }
  return total;
}

type Fact = Pick<CallLogs, 'verdict' | 'verdictAt' | 'unheardMs'> & { readonly isLost: boolean };
type Verdict = { readonly at: number; readonly unheardMs?: number };

/** The facts that only the gateway knows. */
function factsOf(events: readonly StoredEvent[]): ReadonlyMap<string, Fact> {
  const facts = new Map<string, Fact>();
  const verdicts = new Map<string, Verdict>();
  for (const { event } of events) {
    const { callId, type, data, time } = event;
    const { amd } = data as { readonly amd?: { readonly event: string; unheardMs?: number } };
    if (amd !== undefined && amd.event !== 'amd_stopped') {
      verdicts.set(callId, { at: Date.parse(time), ...defined({ unheardMs: amd.unheardMs }) });
    }
    if (type !== 'completed' && type !== 'failed') continue;
    const { machineDetection: verdict, reason = '' } = data as Record<string, string | undefined>;
    const { at: verdictAt, unheardMs } = verdicts.get(callId) ?? {};
    facts.set(callId, {
      ...defined({ verdict, verdictAt, unheardMs }),
      isLost: /^Gateway (lost|restarted|failed)/.test(reason),
    });
  }
  return facts;
}

function logsOf(world: MeterWorld, number: string, fact: Fact): CallLogs | undefined {
  const call = world.call(number);
  if (call === undefined) return undefined;
  const { answeredAt, greetingBeganAt, greetingEndedAt, endedAt, heardAt, byes } = world.farCall(
    number,
  ) ?? { byes: [] };
  const botSpokeAt = world.bots.logs.get(number)?.firstSoundAt;
  const agentAnsweredAt =
    call.agent === undefined ? undefined : world.farCall(call.agent.number)?.answeredAt;
  const hungUpItself = answeredAt !== undefined && !byes.some(({ status }) => status === 200);
  const crossing = byes.find(({ status }) => status === 481);
  const crossedAfterMs = crossing && crossing.at - (endedAt ?? 0);
  return {
    ...{ campaign: call.campaign, announces: call.announces },
    ...defined({ verdict: fact.verdict, verdictAt: fact.verdictAt, unheardMs: fact.unheardMs }),
    person: {
      hungUpItself,
      ...defined({
        answeredAt,
        greetingBeganAt,
        greetingEndedAt,
        endedAt,
        heardAt,
        crossedAfterMs,
      }),
    },
    ...defined({ botSpokeAt, agentAnsweredAt }),
  };
}

type Defined<Given> = { [Key in keyof Given]?: Exclude<Given[Key], undefined> };

function defined<Given extends Record<string, unknown>>(given: Given): Defined<Given> {
  return Object.fromEntries(
    Object.entries(given).filter(([, value]) => value !== undefined),
  ) as Defined<Given>;
}

type Compared = {
  readonly number: string;
  readonly callId: string;
  readonly campaign: CampaignName;
  readonly formula: Formula;
  readonly counted: Recounted;
  readonly stored: Outcome;
  readonly isLost: boolean;
  /** Whether the gateway was too busy to hear a part of the call. */
  readonly isUnheard: boolean;
  /** Whether the logs alone decide: the process lived, heard all, and no limit was near. */
  readonly isCertain: boolean;
  /** Why the stored outcome is wrong. */
  readonly problem?: string;
};

async function compare(
  world: MeterWorld,
  records: readonly MeterRecord[],
  events: readonly StoredEvent[],
  log: (line: string) => void,
): Promise<MeterReport> {
  const facts = factsOf(events);
  const byId = new Map(records.map((record) => [record.callId, record]));
  const violations: string[] = [];
  if (byId.size !== records.length) violations.push('a call has two records');
  const compared = [...world.accepted].flatMap(([number, callId]) => {
    const [record, fact] = [byId.get(callId), facts.get(callId)];
    const logs = fact && logsOf(world, number, fact);
    if (record === undefined || fact === undefined || logs === undefined) {
      violations.push(`${callId} has no record or no end`);
      return [];
    }
    return formulas.map((formula) => compareOne(world, { number, record, fact, logs, formula }));
  });
  violations.push(...compared.flatMap(({ problem }) => problem ?? []));
  violations.push(...(await wrongFigures(world, compared, log)));
  return { violations, counts: countsOf(world, compared) };
}

function compareOne(
  { deaths }: MeterWorld,
  given: {
    readonly number: string;
    readonly record: MeterRecord;
    readonly fact: Fact;
    readonly logs: CallLogs;
    readonly formula: Formula;
  },
): Compared {
  const { number, record, fact, logs, formula } = given;
  const counted = recount(logs, formula);
  const stored = (formula === 'ftc' ? record.ftcOutcome : record.ofcomOutcome) ?? 'none';
  const base = {
    ...{ number, callId: record.callId, campaign: logs.campaign, formula, counted, stored },
    isLost: fact.isLost,
    isUnheard: logs.unheardMs !== undefined,
    isCertain: !fact.isLost && counted.marginMs >= Math.max(marginMs, doubtMs(logs)),
  };
  if (!fact.isLost && !base.isCertain) return base;
  const died = deaths.map(({ at }) => at).filter((at) => at <= (logs.person.endedAt ?? at));
  const may = fact.isLost
    ? new Set(died.flatMap((at) => [...outcomesAfterDeath(counted, at, storedWithinMs)]))
    : new Set([counted.outcome]);
  if (may.has(stored)) return base;
  const problem = `${record.callId} ${formula}: ${stored}, but the logs say ${[...may].join(' or ')} by ${Math.round(counted.marginMs)} ms${fact.isLost ? ', lost' : ''}: ${describe(logs)}`;
  return { ...base, problem };
}

/**
 * The meter counts from the earliest instant at which an unheard greeting may have begun, so it may
 * say `abandoned` of a call that was connected in time.
 */
function doubtMs({ unheardMs = 0 }: CallLogs): number {
  return unheardMs === 0 ? 0 : unheardMs + marginMs;
}

/** Times from the answer, for whoever looks for the cause of a difference. */
function describe({ person, verdict = 'no verdict', campaign, announces, ...logs }: CallLogs) {
  const from = person.answeredAt ?? 0;
  const times = { ...person, ...logs, answeredAt: undefined, unheardMs: undefined };
  const told = Object.entries(times).flatMap(([name, at]) =>
    typeof at === 'number' ? [`${name} ${at - from}`] : [],
  );
  const unheard = logs.unheardMs === undefined ? '' : `, ${logs.unheardMs} ms unheard`;
  const ending = person.hungUpItself ? ', hung up itself' : '';
  return `${campaign}${announces ? ', announces' : ''}, ${verdict}, ${told.join(', ')}${unheard}${ending}`;
}

/** Compares the campaigns' figures with the second count, and with the calls' records. */
async function wrongFigures(
  world: MeterWorld,
  compared: readonly Compared[],
  log: (line: string) => void,
): Promise<readonly string[]> {
  const wrong: string[] = [];
  for (const campaign of campaignNames) {
    const figures = await figuresOf(world, campaign);
    for (const formula of formulas) {
      const own = compared.filter((one) => one.campaign === campaign && one.formula === formula);
      const counted = own.map(outcomeOf);
      const expected = {
        answeredByPerson: ofPeople(campaign, compared),
        abandoned: counted.filter((outcome) => outcome === 'abandoned').length,
        connected: counted.filter((outcome) => outcome === 'connected').length,
      };
      const shown = figures[formula];
      log(`${campaign} ${formula}: figures ${text(shown)}, logs ${text(expected)}`);
      if (text(shown) !== text(expected)) {
        wrong.push(`${campaign} ${formula}: figures ${text(shown)}, logs ${text(expected)}`);
      }
    }
  }
  return wrong;
}

function ofPeople(campaign: CampaignName, compared: readonly Compared[]): number {
  return compared.filter(
    (one) => one.campaign === campaign && one.formula === 'ftc' && outcomeOf(one) !== 'none',
  ).length;
}

function outcomeOf({ isCertain, counted, stored }: Compared): Outcome {
  return isCertain ? counted.outcome : stored;
}

const text = ({ answeredByPerson, abandoned, connected }: Tally): string =>
  `${answeredByPerson} people, ${abandoned} abandoned, ${connected} connected`;

function countsOf(
  world: MeterWorld,
  compared: readonly Compared[],
): Readonly<Record<string, number>> {
  const ftc = compared.filter(({ formula }) => formula === 'ftc');
  const near = compared.filter(({ isLost, isCertain }) => !isLost && !isCertain);
  const margins = compared.map(({ counted }) => counted.marginMs).filter(Number.isFinite);
  const outcomes = (['connected', 'abandoned', 'left', 'none'] as const).map((outcome) => [
    `ftc ${outcome}`,
    ftc.filter((one) => one.counted.outcome === outcome).length,
  ]);
  const differs = ftc.filter(({ callId, counted }) =>
    compared.some(
      (one) =>
        one.formula === 'ofcom' && one.callId === callId && one.counted.outcome !== counted.outcome,
    ),
  );
  return {
    accepted: world.accepted.size,
    invited: [...world.accepted.keys()].filter((number) => world.farCall(number)).length,
    answered: [...world.accepted.keys()].filter((number) => world.farCall(number)?.answeredAt)
      .length,
    ...(Object.fromEntries(outcomes) as Record<string, number>),
    'different by the two formulas': differs.length,
    'calls whose process died': ftc.filter(({ isLost }) => isLost).length,
    [`outcomes decided within ${marginMs} ms of a limit`]: near.length,
    '… of which the clocks disagree': near.filter(
      ({ counted, stored }) => counted.outcome !== stored,
    ).length,
    'calls of which a part went unheard': ftc.filter(({ isUnheard }) => isUnheard).length,
    'closest to a limit, ms': Math.round(Math.min(...margins)),
    'outcomes that disagree': compared.filter(({ problem }) => problem !== undefined).length,
    ...announcements(world, compared),
  };
}

/** How soon after the greeting a phone heard the announcement, by the phone's own clock. */
function announcements(
  world: MeterWorld,
  compared: readonly Compared[],
): Readonly<Record<string, number>> {
  const afterMs = compared.flatMap(({ number, formula, counted, campaign }) => {
    const call = world.call(number);
    const { greetingEndedAt, heardAt } = world.farCall(number) ?? {};
    if (formula !== 'ftc' || call?.announces !== true || counted.outcome !== 'abandoned') return [];
    // In the campaign of agents, a bot may have been heard before.
    if (campaign !== 'bots' || greetingEndedAt === undefined || heardAt === undefined) return [];
    return [heardAt - greetingEndedAt];
  });
  return {
    'announcements heard': afterMs.length,
    'announcements heard later than 2 s': afterMs.filter((ms) => ms > 2_000).length,
    'latest announcement, ms after the greeting': Math.max(0, ...afterMs),
  };
}
