// Legs whose engine went away under them. Their calls have ended, but the far end may still be in one: each is ended by its
// ids when its engine is back. While it stays away, another process that may still reach it is asked to do that; and once it
// was answered, another engine of this process can send a rebuilt BYE.

import type { StoredLeg } from '../calls/ports.ts';
import type { Logger } from '../lib/logger.ts';
import type { EngineLink } from './engine-link.ts';
import { endOrphanOn, type OrphanResult } from './orphans.ts';
import type { SipLimits } from './sip-limits.ts';

type Abandoned = {
  readonly leg: StoredLeg;
  readonly at: number;
  /** Nothing more will be done about it. */
  readonly settle: () => void;
};

export type AbandonedLegsDependencies = {
  readonly limits: SipLimits;
  readonly logger: Logger;
  /** The link to this engine, while it is up. */
  readonly linkOf: (engine: string) => EngineLink | undefined;
  /** A link to another engine than this one, if there is one. */
  readonly otherLink: (engine: string) => EngineLink | undefined;
  /** Never rejects. */
  readonly askOthers: (leg: StoredLeg) => Promise<OrphanResult>;
};

/** Requests to other processes under way at once: a lost engine may have had thousands of legs. */
const askedAtOnce = 100;

export class AbandonedLegs {
  readonly #dependencies: AbandonedLegsDependencies;
  #legs: Abandoned[] = [];
  #asked = 0;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(dependencies: AbandonedLegsDependencies) {
    this.#dependencies = dependencies;
  }

  /** Resolves when the leg is ended, or given up. */
  add(leg: StoredLeg): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    const { limits, logger } = this.#dependencies;
    if (this.#legs.length >= limits.abandonedLegs) {
      logger.warn({ engine: leg.engine }, 'too many legs of lost engines, one is left to itself');
      return Promise.resolve();
    }
    return new Promise((settle) => this.#keep({ leg, at: performance.now(), settle }));
  }

  onUp(link: EngineLink): void {
    for (const entry of this.#take(({ leg }) => leg.engine === link.engine)) this.#end(link, entry);
  }

  close(): void {
    this.#isClosed = true;
    this.#stopSweeping();
    for (const { settle } of this.#legs.splice(0)) settle();
  }

  #keep(entry: Abandoned): void {
    this.#legs.push(entry);
    this.#timer ??= setInterval(() => this.#sweep(), this.#dependencies.limits.abandonedSweepMs);
  }

  #sweep(): void {
    const { limits, linkOf, otherLink } = this.#dependencies;
    const ageMs = ({ at }: Abandoned): number => performance.now() - at;
    for (const { settle } of this.#take((entry) => ageMs(entry) > limits.abandonedForMs)) settle();
    for (const entry of this.#take((candidate) => ageMs(candidate) >= limits.takeOverAfterMs)) {
      const { engine, dialogId } = entry.leg;
      const link = linkOf(engine) ?? (dialogId === undefined ? undefined : otherLink(engine));
      if (link !== undefined) this.#end(link, entry);
      else if (this.#asked < askedAtOnce) void this.#askOthers(entry);
      else this.#legs.push(entry);
    }
    if (this.#legs.length === 0) this.#stopSweeping();
  }

  #stopSweeping(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #end(link: EngineLink, entry: Abandoned): void {
    const { limits } = this.#dependencies;
    void endOrphanOn(link, entry.leg, limits).then((result) => {
      // The engine went away again: it is ended when it is back the next time.
      this.#settle(entry, link.engine, result, result !== 'unreachable' || link.isUp);
    });
  }

  async #askOthers(entry: Abandoned): Promise<void> {
    const { leg } = entry;
    this.#asked += 1;
    const result = await this.#dependencies.askOthers(leg);
    this.#asked -= 1;
    // One that was not answered is known to its own engine only, which the other process may not have asked.
    const isOver = result === 'ended' || (result === 'gone' && leg.dialogId !== undefined);
    this.#settle(entry, leg.engine, result, isOver);
  }

  #settle(entry: Abandoned, engine: string, result: OrphanResult, isOver: boolean): void {
    if (isOver || this.#isClosed) {
      this.#dependencies.logger.info({ engine, result }, 'leg of a lost engine ended');
      entry.settle();
    } else this.#keep(entry);
  }

  #take(isWanted: (entry: Abandoned) => boolean): readonly Abandoned[] {
    const taken = this.#legs.filter(isWanted);
    this.#legs = this.#legs.filter((entry) => !isWanted(entry));
    return taken;
  }
}
