// Admits second legs, i.e. the calls to people or systems that a first callee is connected to. It
// checks that the app may dial the target, and reserves a slot on the trunk at the trunk's pace.
// Second legs bypass the queue, because someone is already waiting on the line.

import { setTimeout as pause } from 'node:timers/promises';
import type { AcceptedCall } from '../calls/call-types.ts';
import type { AppLookup, CallTakes, SecondLegTakes, TrunkLimits } from '../calls/dialout-ports.ts';
import type { Admission, Clock, SecondLegPort, SuppressionCheck } from '../calls/ports.ts';
import { mayDial } from '../calls/target/app-limits.ts';
import type { Transfer } from '../calls/transfer/transfer.ts';
import { inBackground } from '../lib/in-background.ts';
import type { Logger } from '../lib/logger.ts';
import { createTurn, timed } from './turn.ts';

export type SecondLegsPorts = {
  readonly takes: SecondLegTakes;
  readonly trunks: Pick<CallTakes, 'nextStart' | 'release'>;
  readonly limitsOf: (trunk: string) => TrunkLimits | undefined;
  readonly apps: AppLookup;
  readonly suppressions: SuppressionCheck;
  readonly clock: Clock;
  readonly logger: Logger;
};

/** Pause before the next attempt if the trunk was full or the database reported an error. */
const retryMs = 250;
/**
 * After this many failed attempts to release a slot, we leave it to the sweep, which releases the
 * slot after the call has ended.
 */
const releaseTries = 20;
const releaseRetryMs = 500;

export class SecondLegs implements SecondLegPort {
  readonly #ports: SecondLegsPorts;
  /**
   * Ids of second legs that occupy a slot, or may occupy one because the database's response was
   * lost.
   */
  readonly #held = new Set<string>();

  constructor(ports: SecondLegsPorts) {
    this.#ports = ports;
  }

  async admit(call: AcceptedCall, transfer: Transfer, isWanted: () => boolean): Promise<Admission> {
    const reachability = await this.#whileWanted(isWanted, () => this.#reach(call, transfer));
    if (reachability === 'suppressed') {
      return { ok: false, reason: 'The number is suppressed', isSuppressed: true };
    }
    const refusal = await this.#whileWanted(isWanted, () => this.#checkPermission(call, transfer));
    if (refusal === undefined) return { ok: false, reason: 'No longer wanted' };
    if (refusal !== 'allowed') return { ok: false, reason: refusal };
    const { trunk, mode, legId } = transfer;
    // In a referral, the other side places the call itself, so we don't need a slot.
    if (mode === 'refer' || trunk === undefined) return { ok: true };
    const turn = await this.#whileWanted(isWanted, () => this.#takeSlot(call, legId, trunk));
    if (turn === undefined) {
      // The database may have granted a slot even though its response was lost.
      this.giveBack(legId);
      return { ok: false, reason: 'The trunk has no room' };
    }
    await turn(isWanted);
    return { ok: true };
  }

  giveBack(legId: string): void {
    if (!this.#held.delete(legId)) return;
    inBackground(this.#release(legId), this.#ports.logger, 'giving back a slot');
  }

  /**
   * Repeats `attempt` until it returns a value or the leg is no longer wanted.
   * @returns undefined if the leg is no longer wanted
   */
  async #whileWanted<Value>(
    isWanted: () => boolean,
    attempt: () => Promise<Value | undefined>,
  ): Promise<Value | undefined> {
    while (isWanted()) {
      try {
        const value = await attempt();
        if (value !== undefined) return value;
      } catch (error) {
        this.#ports.logger.warn({ err: error }, 'a second leg is not admitted yet');
      }
      await pause(retryMs);
    }
    return undefined;
  }

  /**
   * Checks that the target isn't suppressed. The far end of a referral places the call itself, so
   * this is the last moment to ask.
   * @returns undefined if the database doesn't respond
   */
  async #reach(call: AcceptedCall, { to }: Transfer): Promise<'free' | 'suppressed' | undefined> {
    if (call.isRuled !== true) return 'free';
    const reachability = await this.#ports.suppressions.reach(call.accountId, to);
    return reachability === 'unknown' ? undefined : reachability;
  }

  async #checkPermission({ appId }: AcceptedCall, { to }: Transfer): Promise<string> {
    const { apps, takes, clock } = this.#ports;
    const app = await apps.find(appId);
    if (app === undefined) return 'The app no longer exists';
    const { limits } = app;
    if (!mayDial(limits, to)) return 'The app may not dial this number';
    const { callsPerDay } = limits ?? {};
    if (callsPerDay === undefined) return 'allowed';
    const isCounted = await takes.countToday(appId, callsPerDay, clock.now());
    return isCounted ? 'allowed' : 'The app has reached its calls per day';
  }

  /**
   * Reserves a slot on the trunk.
   * @returns undefined if the trunk is full
   */
  async #takeSlot({ callId }: AcceptedCall, legId: string, trunk: string) {
    const { limitsOf, takes, trunks, logger } = this.#ports;
    const nowMs = (): number => performance.now();
    const limits = limitsOf(trunk);
    if (limits === undefined) return async () => undefined;
    this.#held.add(legId);
    const start = await timed(nowMs, async () => {
      const slot = await takes.takeSlot({ legId, callId, trunk, limits });
      return slot ?? { startInMs: undefined, tookMs: 0 };
    });
    const { startInMs } = start.answer;
    if (startInMs === undefined) return undefined;
    const ports = { takes: trunks, limits: () => limitsOf(trunk), nowMs, logger };
    return createTurn(ports, trunk, callId, start.startOf(startInMs));
  }

  async #release(legId: string): Promise<void> {
    for (let tries = 1; tries <= releaseTries; tries += 1) {
      try {
        await this.#ports.trunks.release([legId]);
        return;
      } catch (error) {
        if (tries === 1) this.#ports.logger.warn({ err: error }, 'a slot was not released');
      }
      await pause(releaseRetryMs, undefined, { ref: false });
    }
  }
}
