// Legs whose engine went away under them. Their calls have ended, but the far end may still be in one: each is ended by its
// ids when its engine is back, or, once it was answered, by a rebuilt BYE through another engine when it stays away.

import type { StoredLeg } from '../calls/ports.ts';
import type { Logger } from '../lib/logger.ts';
import type { EngineLink } from './engine-link.ts';
import { endOrphanOn } from './orphans.ts';
import type { SipLimits } from './sip-limits.ts';

type Abandoned = {
  readonly leg: StoredLeg;
  readonly at: number;
  /** Nothing more will be done about it. */
  readonly settle: () => void;
};

export class AbandonedLegs {
  readonly #limits: SipLimits;
  readonly #logger: Logger;
  /** A link to another engine than this one, if there is one. */
  readonly #otherLink: (engine: string) => EngineLink | undefined;
  #legs: Abandoned[] = [];
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(dependencies: {
    readonly limits: SipLimits;
    readonly logger: Logger;
    readonly otherLink: (engine: string) => EngineLink | undefined;
  }) {
    this.#limits = dependencies.limits;
    this.#logger = dependencies.logger;
    this.#otherLink = dependencies.otherLink;
  }

  /** Resolves when the leg is ended, or given up. */
  add(leg: StoredLeg): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    if (this.#legs.length >= this.#limits.abandonedLegs) {
      this.#logger.warn(
        { engine: leg.engine },
        'too many legs of lost engines, one is left to itself',
      );
      return Promise.resolve();
    }
    return new Promise((settle) => this.#keep({ leg, at: performance.now(), settle }));
  }

  onUp(link: EngineLink): void {
    this.#end(
      link,
      this.#take(({ leg }) => leg.engine === link.engine),
    );
  }

  close(): void {
    this.#isClosed = true;
    this.#stopSweeping();
    for (const { settle } of this.#legs.splice(0)) settle();
  }

  #keep(entry: Abandoned): void {
    this.#legs.push(entry);
    this.#timer ??= setInterval(() => this.#sweep(), this.#limits.takeOverAfterMs);
  }

  #sweep(): void {
    const now = performance.now();
    for (const { settle } of this.#take(({ at }) => now - at > this.#limits.abandonedForMs)) {
      settle();
    }
    const overdue = ({ leg, at }: Abandoned) =>
      leg.dialogId !== undefined && now - at >= this.#limits.takeOverAfterMs;
    for (const engine of new Set(this.#legs.filter(overdue).map(({ leg }) => leg.engine))) {
      const link = this.#otherLink(engine);
      if (link === undefined) continue;
      this.#end(
        link,
        this.#take((entry) => entry.leg.engine === engine && overdue(entry)),
      );
    }
    if (this.#legs.length === 0) this.#stopSweeping();
  }

  #stopSweeping(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #end(link: EngineLink, entries: readonly Abandoned[]): void {
    for (const entry of entries) {
      void endOrphanOn(link, entry.leg, this.#limits).then((result) => {
        this.#logger.info({ engine: link.engine, result }, 'leg of a lost engine ended');
        // The engine went away again: it is ended when it is back the next time.
        if (result === 'unreachable' && !link.isUp && !this.#isClosed) this.#keep(entry);
        else entry.settle();
      });
    }
  }

  #take(isWanted: (entry: Abandoned) => boolean): readonly Abandoned[] {
    const taken = this.#legs.filter(isWanted);
    this.#legs = this.#legs.filter((entry) => !isWanted(entry));
    return taken;
  }
}
