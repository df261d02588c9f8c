// Legs whose engine went away under them. Their calls have ended, but the far end may still be in one: each is ended by its
// ids when its engine is back. While it stays away, another process that may still reach it is asked to do that; and once it
// was answered, another engine of this process can send a rebuilt BYE.

import type { OrphanResult, StoredLeg } from '../calls/contract/stored-leg.ts';
import type { Logger } from '../lib/logger.ts';
import type { EngineLink } from './engine-link.ts';
import { endOrphanOn } from './orphans.ts';
import type { SipLimits } from './sip-limits.ts';

type Abandoned = {
  readonly leg: StoredLeg;
  readonly at: number;
  /** Nothing more will be done about it. */
  readonly settle: () => void;
  /** Over a link of this process. */
  isBeingEnded: boolean;
  /** Of another process; meanwhile its own engine may be back. */
  isAskedFor: boolean;
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
  readonly #legs = new Set<Abandoned>();
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
    if (this.#legs.size >= limits.abandonedLegs) {
      logger.warn({ engine: leg.engine }, 'too many legs of lost engines, one is left to itself');
      return Promise.resolve();
    }
    this.#timer ??= setInterval(() => this.#sweep(), limits.abandonedSweepMs);
    return new Promise((settle) => {
      const at = performance.now();
      this.#legs.add({ leg, at, settle, isBeingEnded: false, isAskedFor: false });
    });
  }

  onUp(link: EngineLink): void {
    for (const entry of this.#legs) if (entry.leg.engine === link.engine) this.#end(link, entry);
  }

  close(): void {
    this.#isClosed = true;
    for (const entry of this.#legs) this.#drop(entry);
  }

  #sweep(): void {
    const { limits, linkOf, otherLink } = this.#dependencies;
    const now = performance.now();
    for (const entry of this.#legs) {
      const { engine, dialogId } = entry.leg;
      const ageMs = now - entry.at;
      if (ageMs > limits.abandonedForMs) this.#drop(entry);
      if (ageMs > limits.abandonedForMs || ageMs < limits.takeOverAfterMs) continue;
      const link = linkOf(engine) ?? (dialogId === undefined ? undefined : otherLink(engine));
      if (link === undefined) void this.#askOthers(entry);
      else this.#end(link, entry);
    }
  }

  #end(link: EngineLink, entry: Abandoned): void {
    if (entry.isBeingEnded) return;
    entry.isBeingEnded = true;
    void endOrphanOn(link, entry.leg, this.#dependencies.limits).then((result) => {
      entry.isBeingEnded = false;
      // The engine went away again: it is ended when it is back the next time.
      if (result !== 'unreachable' || link.isUp) this.#drop(entry, result);
    });
  }

  async #askOthers(entry: Abandoned): Promise<void> {
    if (entry.isAskedFor || this.#asked >= askedAtOnce) return;
    entry.isAskedFor = true;
    this.#asked += 1;
    const result = await this.#dependencies.askOthers(entry.leg);
    this.#asked -= 1;
    entry.isAskedFor = false;
    // One that was not answered is known to its own engine only, which the other process may not have asked.
    const isOver = result === 'ended' || (result === 'gone' && entry.leg.dialogId !== undefined);
    if (isOver) this.#drop(entry, result);
  }

  #drop(entry: Abandoned, result?: OrphanResult): void {
    if (!this.#legs.delete(entry)) return;
    if (result !== undefined) {
      const { engine } = entry.leg;
      this.#dependencies.logger.info({ engine, result }, 'leg of a lost engine ended');
    }
    entry.settle();
    if (this.#legs.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
