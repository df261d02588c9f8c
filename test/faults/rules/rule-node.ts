// A process of the rules storm. Real: storing, claiming and checking calls, the check before each
// INVITE, suppressing, the outbox, settling, leases and recovery, with their statements. Scripted:
// the state machine of a call, SIP, and NATS, which loses nothing.

import { setTimeout as pause } from 'node:timers/promises';
import { type AcceptedCall, ruledAccountIn } from '../../../src/calls/call-types.ts';
import type { CallId } from '../../../src/calls/contract/identity.ts';
import type { CallTakes, Turn } from '../../../src/calls/dialout-ports.ts';
import { progressOfAccepted } from '../../../src/calls/life/call-events.ts';
import { endOfRefusal } from '../../../src/calls/life/call-outcome.ts';
import type { CallEnding } from '../../../src/calls/life/call-step.ts';
import { CallTaking } from '../../../src/dialout/call-taking.ts';
import { createEndRecorder } from '../../../src/dialout/end-recorder.ts';
import { reachNow } from '../../../src/dialout/guarded-sip.ts';
import { createSuppressing, type NodeSuppressing } from '../../../src/dialout/suppressing.ts';
import { silentLogger } from '../../../src/lib/logger.ts';
import { Recovery } from '../../../src/recovery/recovery.ts';
import { type CallLedger, createCallLedger } from '../../../src/store/calls/call-ledger.ts';
import { createCallTakes } from '../../../src/store/calls/call-takes.ts';
import type { Database } from '../../../src/store/database.ts';
import { createNodeStore, type NodeStore } from '../../../src/store/nodes.ts';
import { appendSteps } from '../../../src/store/outbox/call-appends.ts';
import { Outbox } from '../../../src/store/outbox/outbox.ts';
import { Settling } from '../../../src/store/outbox/settling.ts';
import { createPermits } from '../../../src/store/rules/permits.ts';
import { createRuleSetStore, type RuleSetStore } from '../../../src/store/rules/rule-sets.ts';
import { createSuppressedCalls } from '../../../src/store/rules/suppressed-calls.ts';
import { createSuppressionCheck } from '../../../src/store/rules/suppression-check.ts';
import { createSuppressions, type Suppressions } from '../../../src/store/rules/suppressions.ts';
import { createSecretBox } from '../../../src/store/secrets.ts';
import { answeredEventOf, endEventOf, storedLeg } from '../../support/call-records.ts';
import type { Callee } from './callee.ts';
import type { Life } from './mortal-database.ts';
import type { Invite } from './rules-oracle.ts';

const mostCalls = 400;
const clock = { now: () => new Date() };
/** Trunk `b` has a limit, so that slots are taken and given back. */
export const trunks = { a: undefined, b: { maxConcurrentCalls: 150 } } as const;

/** `gateway` is the last one that has got an INVITE, or 0. */
type Live = { isRefused: boolean; gateway: number };
type Reached = Awaited<ReturnType<typeof reachNow>>;

export type NodePorts = {
  readonly database: Database;
  readonly life: Life;
  readonly callee: Callee;
  readonly leaseMs: number;
  readonly hint: (source: string | undefined) => void;
  readonly askOwner: (ownerId: string, callIds: readonly CallId[]) => void;
  /** `ending` is the rule that refused the call, or what became of it. */
  readonly onEnd: (ending: string) => void;
};

export class RuleNode {
  readonly ledger: CallLedger;
  readonly taking: CallTaking;
  readonly suppressing: NodeSuppressing;
  readonly suppressions: Suppressions;
  readonly ruleSets: RuleSetStore;
  readonly recovery: Recovery;
  readonly ownerId: string;
  readonly #ports: NodePorts;
  readonly #store: NodeStore;
  readonly #outbox: Outbox;
  readonly #settling: Settling;
  readonly #live = new Map<CallId, Live>();
  /** When each taken call was asked for. Its check came later. */
  readonly #checkedAfter = new Map<CallId, number>();
  readonly #check: ReturnType<typeof createSuppressionCheck>;
  #mayTakeUntil = 0;
  #loops: Promise<unknown> | undefined;

  constructor(ownerId: string, ports: NodePorts) {
    this.ownerId = ownerId;
    this.#ports = ports;
    const { database } = ports;
    const { pool } = database;
    this.ledger = createCallLedger({
      ...{ database, secrets: createSecretBox(Buffer.alloc(32, 7)), logger: silentLogger, clock },
    });
    this.#store = createNodeStore(database, ownerId, ports.leaseMs);
    const append = {
      ...{ pool, ownerId, owedFor: () => undefined, publishedThrough: () => undefined },
      ...{ now: clock.now, leaseUntil: (at: Date) => at, passRefusedAfterMs: 60_000 },
    };
    this.#outbox = new Outbox({
      append: (steps) => appendSteps(append, steps),
      onStored: () => undefined,
      logger: silentLogger,
    });
    this.#settling = new Settling(pool, ownerId, () => false, silentLogger);
    this.suppressions = createSuppressions(database);
    this.#check = createSuppressionCheck(pool, silentLogger);
    this.ruleSets = createRuleSetStore({ database, clock });
    this.suppressing = createSuppressing({
      ...{ store: this.suppressions, calls: createSuppressedCalls(pool), ownerId },
      registry: { refuse: (callId) => this.#refuse(callId) },
      askOwner: ports.askOwner,
    });
    const ends = createEndRecorder(this.#outbox);
    this.recovery = this.#openRecovery(ends);
    const permits = createPermits(pool, ownerId, { clock, maxHeldPerAccount: 100_000 });
    this.taking = new CallTaking({
      ...{ takes: this.#timed(createCallTakes(pool, ownerId, permits)), clock, ends },
      logger: silentLogger,
      limitsOf: (trunk) => trunks[trunk as keyof typeof trunks],
      room: () => mostCalls - this.#live.size,
      mayTake: () => this.#mayInvite(),
      start: (call, _queued, turn) => void this.#dial(call, turn).catch(() => undefined),
      refuse: async (call, _queued, refusal) => {
        const end = endOfRefusal(refusal, new Date());
        await ends.recordClaimed(progressOfAccepted(call), end);
        this.#settling.settle(call.callId);
        ports.onEnd(`refused by ${refusal.rule}`);
      },
      isHere: (callId) => this.#live.has(callId) || this.#outbox.holds(callId),
      here: () => [...this.#live.keys()],
      endUnknown: (callIds) => this.recovery.endOwn(callIds),
      hint: ports.hint,
      // No call of the storm belongs to a campaign.
      reviewCampaigns: async () => false,
    });
  }

  async start(): Promise<void> {
    const nodeId = this.ownerId.split('/')[0] ?? '';
    await this.#store.register({ nodeId, version: '0', questionKey: 'key' });
    await this.#renew();
    this.#loops = Promise.all([
      this.#repeat(150, () => this.#renew()),
      this.#repeat(300, () => this.#takeOver()),
      this.#repeat(500, () => this.taking.sweep()),
      this.#repeat(1_000, () => this.recovery.settleEnds()),
    ]);
  }

  get pool(): Database['pool'] {
    return this.#ports.database.pool;
  }

  get size(): number {
    return this.#live.size;
  }

  get isAlive(): boolean {
    return !this.#ports.life.isOver;
  }

  /**
   * Dies at once. Nothing is stored, sent or logged any more. Resolves when the database has
   * finished the statements that were under way.
   */
  async kill(): Promise<void> {
    this.#ports.life.isOver = true;
    this.recovery.stop();
    // Nothing that these still try gets through. They would try it for ever.
    void Promise.all([this.taking.stop(), this.#outbox.stop(0), this.#settling.stop()]);
    await this.#ports.life.idle();
  }

  async stop(): Promise<void> {
    await this.taking.stop();
    await this.#outbox.stop(2_000);
    await this.#settling.stop();
    await this.kill();
    await this.#loops;
  }

  async #repeat(everyMs: number, work: () => Promise<unknown>): Promise<void> {
    while (this.isAlive) {
      await work().catch(() => undefined);
      await pause(everyMs);
    }
  }

  async #renew(): Promise<void> {
    const askedAt = Date.now();
    if (await this.#store.renew({ calls: 0, draining: false }))
      this.#mayTakeUntil = askedAt + this.#ports.leaseMs;
    else await this.kill();
  }

  /** A process without a lease sends no INVITE (`src/dialout/guarded-sip.ts`). */
  #mayInvite(): boolean {
    return this.isAlive && Date.now() < this.#mayTakeUntil;
  }

  async #takeOver(): Promise<void> {
    const late = await this.#store.findLate();
    if (late.length > 0) await this.#store.expireOthers(late.map(({ ownerId }) => ownerId));
    await this.#store.takeOverLeft();
    await this.recovery.endTakenOver();
  }

  #timed(takes: CallTakes): CallTakes {
    return {
      ...takes,
      take: async (request) => {
        const askedAt = Date.now();
        const taken = await takes.take(request);
        for (const { call, refusal } of taken.grants) {
          if (refusal === undefined) this.#checkedAfter.set(call.callId, askedAt);
        }
        return taken;
      },
    };
  }

  #refuse(callId: CallId): void {
    const live = this.#live.get(callId);
    if (live !== undefined) live.isRefused = true;
  }

  /** What the state machine and the SIP port do with a call that was claimed. */
  async #dial(call: AcceptedCall, turn: Turn | undefined): Promise<void> {
    const live: Live = { isRefused: false, gateway: 0 };
    this.#live.set(call.callId, live);
    await turn?.(() => this.isAlive);
    const end = await this.#tryGateways(call, live);
    if (!this.isAlive) return;
    if (end === 'over') return this.#over(call, 'dialled');
    const isUnsent = live.gateway === 0;
    const rule = end === 'outside-hours' ? 'hours' : 'suppressed';
    await this.#end(call, { outcome: 'not-permitted', rule }, isUnsent ? { isUnsent } : {});
    this.#over(call, `${isUnsent ? 'not sent' : 'cancelled'}: ${rule}`);
  }

  async #tryGateways(call: AcceptedCall, live: Live): Promise<'over' | Reached> {
    const checkedAfter = this.#checkedAfter.get(call.callId) ?? 0;
    for (const gateway of [1, 2]) {
      const reached = await this.#mayReach(call);
      if (reached !== 'free' || live.isRefused || !this.#mayInvite()) return reached;
      const invite = this.#ports.callee.invite(call, checkedAfter, gateway);
      this.taking.onPlaced(call.callId);
      const result = await this.#play(call, invite, live);
      live.gateway = gateway;
      if (result === 'over' || !this.isAlive) return 'over';
    }
    return 'free';
  }

  async #mayReach(call: AcceptedCall): Promise<Reached> {
    const { ruledAccountId } = ruledAccountIn(call);
    if (ruledAccountId === undefined) return 'free';
    const { hoursEndAt, request } = call;
    const hours = hoursEndAt === undefined ? {} : { hoursEndAt };
    const place = { target: request.target, ruledAccountId, ...hours };
    return await reachNow(place, { suppressions: this.#check, clock });
  }

  async #play(call: AcceptedCall, invite: Invite, live: Live): Promise<'over' | 'next'> {
    if (invite.gateway === 1) {
      // As in the state machine, ringing doesn't wait for the database.
      this.#outbox
        .append(call, { events: [], leg: storedLeg, dialedAt: new Date(invite.at) })
        .catch(() => undefined);
    }
    const result = await this.#ports.callee.ring(invite, () => live.isRefused || !this.isAlive);
    if (!this.isAlive) return 'over';
    if (result === 'next' || live.isRefused) return 'next';
    if (result === 'busy') {
      await this.#end(call, { outcome: 'busy' });
      return 'over';
    }
    const answeredAt = new Date(invite.answeredAt ?? 0);
    const events = [answeredEventOf(call, answeredAt.toISOString())];
    if ((await this.#outbox.append(call, { events, answeredAt })) === 'stored')
      invite.answerStoredAt = Date.now();
    await this.#ports.callee.talk();
    await this.#end(call, { outcome: 'completed' }, {}, 'completed');
    return 'over';
  }

  async #end(
    call: AcceptedCall,
    data: Parameters<typeof endEventOf>[1],
    more: Omit<CallEnding, 'event'> = {},
    type: 'completed' | 'failed' = 'failed',
  ): Promise<void> {
    if (!this.isAlive) return;
    const time = new Date().toISOString();
    const event = { ...endEventOf(call, { ...data, type, callDisconnectTime: time }), time };
    await this.#outbox.append(call, { events: [], legIsOver: true, ending: { event, ...more } });
  }

  #over(call: AcceptedCall, ending: string): void {
    const { callId } = call;
    this.#live.delete(callId);
    this.#checkedAfter.delete(callId);
    if (!this.isAlive) return;
    this.taking.onReleased(callId);
    this.taking.onEnded(callId);
    this.#settling.settle(callId);
    this.#ports.onEnd(ending);
  }

  #openRecovery(ends: ReturnType<typeof createEndRecorder>): Recovery {
    return new Recovery(
      {
        ...{ ledger: this.ledger, outbox: this.#outbox, ends, clock, logger: silentLogger },
        sip: { endOrphan: async () => 'ended' },
        publish: async () => undefined,
        settle: (callId) => this.#settling.settle(callId),
        noteLegsGone: (callId) => this.#settling.noteLegsGone(callId),
        eventsOnStream: async () => [],
        underWay: () => [...this.#live.keys()],
        isUnderWay: (callId) => this.#live.has(callId) || this.#outbox.holds(callId),
      },
      this.ownerId,
    );
  }
}
