// The rules storm: three processes dial some 200,000 calls of accounts with calling rules on one
// database, while suppressions and rules change, processes die, and answers of the database get
// lost. The callee's log then shows whether any forbidden INVITE left.

import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { AcceptedCall } from '../../../src/calls/call-types.ts';
import type { CallId } from '../../../src/calls/contract/identity.ts';
import type { Suppression } from '../../../src/calls/rules/suppression.ts';
import type { Database } from '../../../src/store/database.ts';
import { releaseHeld } from '../../../src/store/rules/held-calls.ts';
import { acceptedCall } from '../../support/call-records.ts';
import { type Random, randomFrom } from '../random.ts';
import { Callee } from './callee.ts';
import { Life, mortal } from './mortal-database.ts';
import { accounts, anyAccount, anyNumber, type StormAccount } from './rule-accounts.ts';
import { RuleChanges } from './rule-changes.ts';
import { RuleNode, trunks } from './rule-node.ts';
import { forbiddenInvites } from './rules-oracle.ts';
import { type SentRequest, Suppressors } from './suppressors.ts';

export type RulesStormOptions = {
  readonly seed: number;
  readonly calls: number;
  /** Ends the storm before so many calls were accepted. Default: nothing does. */
  readonly signal?: AbortSignal;
  /** Statements of a busy embedded database wait longer than this on PostgreSQL would allow. */
  readonly leaseMs: number;
  /** Requests under way at any time. */
  readonly submitters: number;
  /** Opens the database once more, as another process does. PGlite has one session for all. */
  readonly openDatabase: () => Promise<OpenedDatabase>;
  readonly log: (line: string) => void;
};

export type OpenedDatabase = {
  readonly database: Database;
  /** Breaks the connections as the death of their process does. */
  readonly close: () => Promise<void>;
};

export type RulesStormReport = {
  readonly violations: readonly string[];
  readonly counts: Readonly<Record<string, number>>;
};

type Started = { readonly node: RuleNode; readonly close: () => Promise<void> };

const names = ['a', 'b', 'c'] as const;
/** Calls that wait to be taken. More of them would only wait longer. */
const mostWaiting = 4_000;
/** The share of all calls that go to a number about which there was a request a moment ago. */
const toSuppressed = 0.1;
/**
 * NATS is away for part of the time, for longer than a PUT waits for calls that other processes
 * have. No process can then ask another one to cancel.
 */
const natsMs = { away: { from: 11_000, to: 16_000 }, there: { from: 15_000, to: 40_000 } } as const;
const lossRate = 0.001;
const settleForMs = 60_000;

export async function runRulesStorm(options: RulesStormOptions): Promise<RulesStormReport> {
  const storm = new RulesStorm(options);
  return await storm.run();
}

class RulesStorm {
  readonly #options: RulesStormOptions;
  readonly #random: Random;
  readonly #callee: Callee;
  readonly #nodes = new Map<string, Started>();
  readonly #rules: RuleChanges;
  readonly #suppressors: Suppressors;
  readonly #counts: Record<string, number> = {};
  #runs = 0;
  #isOver = false;
  #isNatsAway = false;

  constructor(options: RulesStormOptions) {
    this.#options = options;
    this.#random = randomFrom(options.seed);
    this.#callee = new Callee(randomFrom(options.seed + 1));
    this.#suppressors = new Suppressors(randomFrom(options.seed + 2), {
      ...{ dialers: 12, pauseMs: { from: 5, to: 80 } },
      silent: () => [...this.#callee.silent].find(({ accountId }) => accountId !== 'free'),
      send: (request) => this.#suppress(request),
    });
    this.#rules = new RuleChanges({
      put: (accountId, name, document) =>
        this.#certainly(async (node) => {
          await node.ruleSets.put(accountId, name, { document, appId: 'app-1' });
        }),
      release: (accountId) => this.#certainly((node) => releaseOf(node, accountId)),
    });
  }

  async run(): Promise<RulesStormReport> {
    const startedAt = performance.now();
    for (const name of names) await this.#start(name);
    for (const account of accounts) await this.#rules.change(account, 0);
    const background = [
      ...[this.#changeRules(), this.#killNodes(), this.#breakNats(), this.#tell()],
    ];
    this.#suppressors.start();
    await Promise.all(Array.from({ length: this.#options.submitters }, () => this.#submit()));
    this.#isOver = true;
    this.#callee.isOver = true;
    await Promise.all([this.#suppressors.stop(), ...background]);
    await this.#settle();
    this.#counts['seconds'] = Math.round((performance.now() - startedAt) / 1_000);
    for (const { node } of this.#nodes.values()) await node.stop();
    for (const { close } of this.#nodes.values()) await close();
    return this.#report();
  }

  /** Starts a process, and another one if its start fails, for example if an answer was lost. */
  async #start(name: string): Promise<void> {
    for (;;) {
      const started = await this.#open(name);
      const hasStarted = await started.node.start().then(
        () => started.node.isAlive,
        () => false,
      );
      this.#nodes.set(name, started);
      if (hasStarted) return;
      await Promise.all([started.node.kill(), started.close()]);
    }
  }

  async #open(name: string): Promise<Started> {
    this.#runs += 1;
    const life = new Life(randomFrom(this.#options.seed + 100 + this.#runs), lossRate);
    const { database, close } = await this.#options.openDatabase();
    const node = new RuleNode(`${name}/${this.#runs}`, {
      ...{
        life,
        callee: this.#callee,
        leaseMs: this.#options.leaseMs,
        database: mortal(database, life),
      },
      hint: (source) => {
        for (const { node: other } of this.#nodes.values()) other.taking.wake(source);
      },
      askOwner: (ownerId, callIds) => this.#ask(ownerId, callIds),
      onEnd: (ending) => this.#count(ending),
    });
    return { node, close };
  }

  #ask(ownerId: string, callIds: readonly CallId[]): void {
    if (this.#isNatsAway) return;
    for (const { node } of this.#nodes.values()) {
      if (node.ownerId === ownerId && node.isAlive) node.suppressing.cancelHere(callIds);
    }
  }

  #anyNode(): RuleNode {
    const node = this.#nodes.get(this.#random.pick(names))?.node;
    if (node === undefined) throw new Error('the nodes have not started');
    return node;
  }

  async #submit(): Promise<void> {
    const { calls, signal } = this.#options;
    while ((this.#counts['accepted'] ?? 0) < calls && signal?.aborted !== true) {
      const { account, call } = this.#call();
      const node = this.#anyNode();
      if (!node.isAlive || waitingAt(node) > mostWaiting) {
        await pause(20);
        continue;
      }
      try {
        const { kind } = await node.ledger.accept(call, {});
        if (kind !== 'accepted') continue;
        this.#remember(account, call);
        this.#count('accepted');
        node.taking.accepted(call);
      } catch {
        this.#count('unanswered requests');
      }
    }
  }

  #remember({ accountId }: StormAccount, { request: { target } }: AcceptedCall): void {
    if (accountId === 'free' || target.kind !== 'tel') return;
    this.#suppressors.noteCall({ accountId, number: target.number });
  }

  #call(): { readonly account: StormAccount; readonly call: AcceptedCall } {
    const random = this.#random;
    const person = random.next() < toSuppressed ? this.#suppressors.anyPerson() : undefined;
    const account =
      accounts.find(({ accountId }) => accountId === person?.accountId) ?? anyAccount(random);
    const { accountId, loose = 0 } = account;
    const base = acceptedCall({ accountId, acceptedAt: new Date() });
    const rules = random.next() < loose ? { rules: 'loose' } : {};
    const trunk = random.pick(Object.keys(trunks) as ['a', 'b']);
    const target = { kind: 'tel', number: person?.number ?? anyNumber(random) } as const;
    const callId = `call-${randomUUID()}` as CallId;
    return {
      account,
      call: { ...base, callId, request: { ...base.request, ...rules, trunk, target } },
    };
  }

  /** Repeats an idempotent request at another process until one answers. */
  async #certainly(request: (node: RuleNode) => Promise<void>): Promise<void> {
    for (;;) {
      const node = this.#anyNode();
      if (
        node.isAlive &&
        (await request(node).then(
          () => true,
          () => false,
        ))
      )
        return;
      await pause(50);
    }
  }

  async #changeRules(): Promise<void> {
    for (let turn = 1; !this.#isOver; turn += 1) {
      await this.#pause(8_000);
      if (this.#isOver) return;
      for (const account of accounts) await this.#rules.change(account, turn);
      this.#count('changes of rules');
    }
  }

  async #suppress({
    accountId,
    number,
    suppressedUntil,
  }: SentRequest): Promise<'answered' | 'over' | 'not-sent'> {
    const node = this.#anyNode();
    if (!node.isAlive) return 'not-sent';
    const request =
      suppressedUntil === 0
        ? node.suppressions.remove(accountId, `+${number}`)
        : this.#put(node, { accountId, number, suppressedUntil });
    const isAnswered = await request.then(
      () => node.isAlive,
      () => false,
    );
    if (isAnswered) return 'answered';
    // The statement whose answer was lost has been executed. That of a dead process may still be
    // under way.
    if (!node.isAlive) await node.kill();
    return 'over';
  }

  async #put(node: RuleNode, { accountId, number, suppressedUntil }: SentRequest): Promise<void> {
    const suppression: Suppression = {
      ...{ reason: 'opt-out', source: 'storm' },
      ...(Number.isFinite(suppressedUntil) && { until: new Date(suppressedUntil) }),
    };
    const app = { accountId, appId: 'app-1' };
    const left = await node.suppressing.suppress(app, `+${number}`, suppression);
    if (left.length > 0) this.#count('PUTs that named calls left');
  }

  async #breakNats(): Promise<void> {
    const { away, there } = natsMs;
    while (!this.#isOver) {
      await this.#pause(this.#random.between(there.from, there.to));
      this.#isNatsAway = true;
      this.#count('outages of NATS');
      await this.#pause(this.#random.between(away.from, away.to));
      this.#isNatsAway = false;
    }
  }

  /** Pauses for a time, or until no more calls are accepted. */
  async #pause(ms: number): Promise<void> {
    const until = performance.now() + ms;
    while (!this.#isOver && performance.now() < until) await pause(100);
  }

  async #killNodes(): Promise<void> {
    const { leaseMs } = this.#options;
    while (!this.#isOver) {
      await this.#pause(this.#random.between(leaseMs / 2, 2 * leaseMs));
      const name = this.#random.pick(names);
      const dying = this.#nodes.get(name);
      if (dying === undefined || this.#isOver) continue;
      this.#count('calls of processes that died', dying.node.size);
      // Its statements end when the database closes its sessions.
      await Promise.all([dying.node.kill(), dying.close()]);
      this.#count('deaths');
      await this.#pause(this.#random.between(0, 2 * leaseMs));
      await this.#start(name);
    }
  }

  /** Waits until every call has ended, except those that wait for a rule. */
  async #settle(): Promise<void> {
    const deadline = performance.now() + settleForMs;
    let left = Number.POSITIVE_INFINITY;
    while (left > 0 && performance.now() < deadline) {
      await pause(1_000);
      left = await this.#unfinished().catch(() => left);
    }
    this.#counts['calls without an end'] = left;
  }

  async #unfinished(): Promise<number> {
    const node = this.#anyNode();
    return await countOpen(node);
  }

  async #tell(): Promise<void> {
    while (!this.#isOver) {
      await this.#pause(15_000);
      const { accepted = 0, deaths = 0 } = this.#counts;
      this.#options.log(
        `${accepted} calls accepted, ${this.#callee.invites.length} INVITEs, ${deaths} deaths`,
      );
    }
  }

  #report(): RulesStormReport {
    const { invites } = this.#callee;
    const { requests } = this.#suppressors;
    return {
      violations: forbiddenInvites({
        invites,
        suppressions: requests,
        rules: this.#rules.versions,
      }),
      counts: {
        ...this.#counts,
        ...this.#suppressors.counts(),
        INVITEs: invites.length,
        'INVITEs to a further gateway': invites.filter(({ gateway }) => gateway > 1).length,
        answers: invites.filter(({ answeredAt }) => answeredAt !== undefined).length,
      },
    };
  }

  #count(what: string, more = 1): void {
    this.#counts[what] = (this.#counts[what] ?? 0) + more;
  }
}

function waitingAt(node: RuleNode): number {
  return [...node.taking.waiting().values()].reduce((sum, count) => sum + count, 0);
}

async function releaseOf(node: RuleNode, accountId: string): Promise<void> {
  await releaseHeld(node.pool, accountId);
}

async function countOpen(node: RuleNode): Promise<number> {
  const { rows } = await node.pool.query<{ count: number }>(
    'select count(*)::integer as count from calls where ended_at is null and not_before is null',
  );
  return rows[0]?.count ?? 0;
}
