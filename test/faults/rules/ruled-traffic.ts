// The dialers of the storm with real gateways whose accounts have calling rules. They place calls
// to few numbers, suppress and free these numbers, and change their rule sets, each over HTTP at
// any gateway. Each call has its own caller, so the log of a phone tells which call rang it.

import { setTimeout as pause } from 'node:timers/promises';
import type { Pool } from 'pg';
import type { Cluster } from '../../support/cluster.ts';
import { createDialer, type DevApp, type Dialer } from '../../support/dialer-client.ts';
import { type FarCall, numberFor } from '../../support/far-end.ts';
import { isTerminal } from '../../support/receiver.ts';
import type { Random } from '../random.ts';
import { RuleChanges } from './rule-changes.ts';
import { forbiddenInvites, type Invite, type RulesAftermath } from './rules-oracle.ts';
import { anyStormAccount, stormAccounts } from './storm-accounts.ts';
import { type SentRequest, Suppressors } from './suppressors.ts';

export type RuledWorld = {
  readonly cluster: Pick<Cluster, 'farEnd' | 'receiver' | 'offhook'>;
  /** The URL of a gateway that runs. */
  anyUrl(random: Random): string | undefined;
};

type Call = {
  readonly key: string;
  readonly accountId: string;
  readonly number: string;
  readonly rules?: string;
  readonly body: Readonly<Record<string, unknown>>;
  readonly askedAt: number;
  callId?: string;
};

/** So few numbers per account that each is called every few seconds. */
const numbersEach = 12;
/** These numbers are the storm's last ones, which its other calls do not reach. */
const firstIndex = 9_000_000;
const firstCaller = 155_500_000_000;
const changeEveryMs = 20_000;
/** A process that died may have sent a statement that the database still executes. */
const lastEffectMs = 5_000;
const mostDoubtTries = 50;

export class RuledTraffic {
  readonly #world: RuledWorld;
  readonly #random: Random;
  readonly #everyMs: number;
  readonly #apps: ReadonlyMap<string, DevApp>;
  readonly #dialers = new Map<string, Promise<Dialer>>();
  readonly #calls = new Map<string, Call>();
  readonly #underWay = new Set<Promise<void>>();
  readonly #suppressors: Suppressors;
  readonly #rules: RuleChanges;
  readonly #counts = { ruledRequests: 0, putsThatNamedCalls: 0, ruleChanges: 0 };
  #running: Promise<unknown> | undefined;
  #isStopping = false;

  private constructor(
    world: RuledWorld,
    random: Random,
    callsPerSecond: number,
    apps: ReadonlyMap<string, DevApp>,
  ) {
    this.#world = world;
    this.#random = random;
    this.#everyMs = 1_000 / callsPerSecond;
    this.#apps = apps;
    this.#suppressors = new Suppressors(random, {
      ...{ dialers: 4, pauseMs: { from: 200, to: 2_000 } },
      silent: () => undefined,
      send: (request) => this.#suppress(request),
    });
    this.#rules = new RuleChanges({
      put: async (accountId, name, document) => {
        const path = `/api/public/rules/${name}`;
        while ((await this.#send(accountId, 'PUT', path, document))?.status !== 200) {
          await pause(200);
        }
      },
      release: async () => undefined,
    });
  }

  static async start(
    world: RuledWorld,
    random: Random,
    callsPerSecond: number,
  ): Promise<RuledTraffic> {
    const apps = new Map<string, DevApp>();
    for (const { accountId } of stormAccounts) {
      const made = await world.cluster.offhook(
        ...['apps', 'create', '--name', accountId, '--account', accountId, '--bots', '*'],
        ...['--scopes', 'Dialout,Calling Rules'],
      );
      apps.set(accountId, JSON.parse(made) as DevApp);
    }
    const traffic = new RuledTraffic(world, random, callsPerSecond, apps);
    for (const account of stormAccounts) await traffic.#rules.change(account, 0);
    traffic.#running = Promise.all([traffic.#placeCalls(), traffic.#changeRules()]);
    traffic.#suppressors.start();
    return traffic;
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    await Promise.all([this.#running, this.#suppressors.stop()]);
    await Promise.all(this.#underWay);
  }

  /** Repeats every request that had no answer. */
  async settleDoubts(): Promise<void> {
    for (const call of this.#calls.values()) {
      for (let tries = 1; call.callId === undefined; tries += 1) {
        if (tries === mostDoubtTries) throw new Error('no node answers after the storm');
        await this.#dial(call);
        if (call.callId === undefined) await pause(200);
      }
    }
  }

  /** Ids of the accepted calls, by key. */
  get accepted(): ReadonlyMap<string, string> {
    return new Map(
      [...this.#calls.values()].flatMap(({ key, callId }) =>
        callId === undefined ? [] : [[key, callId] as const],
      ),
    );
  }

  /** Whether a phone was called by this traffic. */
  hasCalled({ caller = '' }: Pick<FarCall, 'caller'>): boolean {
    return this.#calls.has(caller);
  }

  unnotified(): number {
    const ended = new Set<string>();
    for (const { body } of this.#world.cluster.receiver.accepted()) {
      if (isTerminal(body)) ended.add(body.callId);
    }
    return [...this.accepted.values()].filter((callId) => !ended.has(callId)).length;
  }

  counts(): Readonly<Record<string, number>> {
    const invites = this.#world.cluster.farEnd.calls.filter((call) => this.hasCalled(call));
    return {
      ...{ ...this.#counts, ...this.#suppressors.counts() },
      ruledCalls: this.accepted.size,
      ruledInvites: invites.length,
    };
  }

  /** Returns the INVITEs that the rules forbid, and the calls with more than one INVITE. */
  async violations(pool: Pool): Promise<readonly string[]> {
    const invites = this.#invites(await takenAt(pool));
    const repeated = new Set(
      invites
        .map(({ callId }) => callId)
        .filter((callId, index, all) => all.indexOf(callId) < index),
    );
    const aftermath: RulesAftermath = {
      invites,
      suppressions: this.#suppressors.requests,
      rules: this.#rules.versions,
    };
    return [
      ...forbiddenInvites(aftermath),
      ...[...repeated].map((callId) => `${callId}: several INVITEs`),
    ];
  }

  #invites(taken: ReadonlyMap<string, number>): readonly Invite[] {
    return this.#world.cluster.farEnd.calls.flatMap(({ caller = '', invitedAt: at }) => {
      const call = this.#calls.get(caller);
      if (call === undefined) return [];
      const { accountId, number, rules, askedAt, callId = call.key } = call;
      const checkedAfter = taken.get(callId) ?? askedAt;
      return [
        {
          ...{ at, checkedAfter, callId, accountId, number, gateway: 1 },
          ...(rules === undefined ? {} : { rules }),
        },
      ];
    });
  }

  async #placeCalls(): Promise<void> {
    for (let index = 0; !this.#isStopping; index += 1) {
      const call = this.#call(index);
      this.#calls.set(call.key, call);
      this.#suppressors.noteCall(call);
      this.#keep(this.#dial(call));
      await pause(this.#everyMs);
    }
  }

  #call(index: number): Call {
    const random = this.#random;
    const { accountId, loose = 0 } = anyStormAccount(random);
    const rules = random.next() < loose ? { rules: 'loose' } : {};
    const account = stormAccounts.findIndex((one) => one.accountId === accountId);
    const place = random.between(0, numbersEach - 1);
    const kinds = ['talk', 'talk', 'busy', 'ring', 'late'] as const;
    const kind = kinds[place % kinds.length] ?? 'talk';
    const number = numberFor(kind, 1 + place, firstIndex + account * numbersEach + place);
    const key = String(firstCaller + index);
    return {
      ...{ key, accountId, number, ...rules, askedAt: Date.now() },
      body: {
        ...{ target: `tel:+${number}`, caller: key, ...rules, machineDetection: 'disabled' },
        notifyurl: this.#world.cluster.receiver.url,
        timeoutInMs: random.between(2_000, 6_000),
        queueTimeoutMs: 30_000,
      },
    };
  }

  async #dial(call: Call): Promise<void> {
    this.#counts.ruledRequests += 1;
    const dialer = await this.#anyDialer(call.accountId);
    const answer = await dialer
      ?.post(call.body, { 'idempotency-key': call.key })
      .catch(() => undefined);
    const { callId } = (answer?.body ?? {}) as { readonly callId?: string };
    if (answer?.status === 200 && callId !== undefined) call.callId = callId;
    else if (answer?.status === 400) throw new Error(JSON.stringify(answer.body));
  }

  async #changeRules(): Promise<void> {
    for (let turn = 1; ; turn += 1) {
      for (let waitedMs = 0; waitedMs < changeEveryMs; waitedMs += 500) {
        if (this.#isStopping) return;
        await pause(500);
      }
      await Promise.all(stormAccounts.map((account) => this.#rules.change(account, turn)));
      this.#counts.ruleChanges += 1;
    }
  }

  async #suppress({
    accountId,
    number,
    suppressedUntil,
  }: SentRequest): Promise<'answered' | 'over' | 'not-sent'> {
    const path = `/api/public/suppressions/+${number}`;
    const until = Number.isFinite(suppressedUntil)
      ? { until: new Date(suppressedUntil).toISOString() }
      : {};
    const body = { reason: 'opt-out', source: 'storm', ...until };
    const answer =
      suppressedUntil === 0
        ? await this.#send(accountId, 'DELETE', path)
        : await this.#send(accountId, 'PUT', path, body);
    if (answer === undefined) return 'not-sent';
    if (answer.status === 200 || answer.status === 404) {
      if ((answer.body as { left?: unknown }).left !== undefined) {
        this.#counts.putsThatNamedCalls += 1;
      }
      return 'answered';
    }
    // While no gateway could be reached, the suppression's end has passed.
    if (answer.status === 400 && suppressedUntil <= Date.now()) return 'not-sent';
    if (answer.status === 400) throw new Error(JSON.stringify(answer.body));
    await pause(lastEffectMs);
    return 'over';
  }

  /** Returns status 0 if there was no answer, and undefined if no gateway runs. */
  async #send(accountId: string, method: 'PUT' | 'DELETE', path: string, body?: unknown) {
    const dialer = await this.#anyDialer(accountId);
    return await dialer
      ?.request(method, path, body)
      .catch(() => ({ status: 0, body: {} as never }));
  }

  async #anyDialer(accountId: string): Promise<Dialer | undefined> {
    const url = this.#world.anyUrl(this.#random);
    const app = this.#apps.get(accountId);
    if (url === undefined || app === undefined) return undefined;
    const known = this.#dialers.get(`${accountId} ${url}`) ?? createDialer(url, app);
    this.#dialers.set(`${accountId} ${url}`, known);
    return await known;
  }

  #keep(work: Promise<void>): void {
    const kept = work.finally(() => this.#underWay.delete(kept));
    this.#underWay.add(kept);
  }
}

/** When each call was taken. It was checked afterwards. */
async function takenAt(pool: Pool): Promise<ReadonlyMap<string, number>> {
  const { rows } = await pool.query<{ call_id: string; dial_started_at: Date }>(
    `select call_id, dial_started_at from calls
     where dial_started_at is not null and account_id = any($1::text[])`,
    [stormAccounts.map(({ accountId }) => accountId)],
  );
  return new Map(rows.map((row) => [row.call_id, row.dial_started_at.getTime()]));
}
