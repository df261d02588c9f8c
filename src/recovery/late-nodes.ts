// Asks late processes whether they are alive before their calls are taken over. A process may be
// late because its own path to the database is broken or slow. Its calls are up all the same, and
// the people on the phone must not be hung up.
//
// A late process that this process may mark as lost is in one of these states:
//
// asked: it's asked in every sweep, at most for a second. If it answers, nothing happens. Otherwise
// it becomes lost: at once if it has never answered, and after the third miss in a row if it has.
// It may be asked three hundred times, and a single lost packet mustn't hang up its calls.
//
// yielding: it has answered for five minutes, during which this process could renew and it
// couldn't. It can't store anything, and nobody can command its calls on another node, so it's told
// to hang up its own calls. It then exits and answers no more, which makes it lost.
//
// lost: marked in the database, which checks again that the process is still late. If it has
// renewed in the meantime, it's neither late nor lost.

import type { Logger } from '../lib/logger.ts';
import { type AliveState, createQuestion, type Question, type Wanted } from './alive-question.ts';

export type LateProcess = {
  readonly ownerId: string;
  readonly urls: readonly string[];
  readonly questionKey: string;
  readonly lateMs: number;
};

/**
 * Delivers a question to a process, in all ways at once.
 *
 * @returns the first answer from which the question can read a state, or undefined if no such
 *   answer arrives within `timeoutMs`, or as soon as every way has failed
 */
export type Deliver = (
  to: Pick<LateProcess, 'ownerId' | 'urls'>,
  question: Question,
  timeoutMs: number,
) => Promise<AliveState | undefined>;

export type LateNodePorts = {
  readonly store: {
    findLate(): Promise<readonly LateProcess[]>;
    expireOthers(ownerIds: readonly string[]): Promise<readonly string[]>;
  };
  readonly deliver: Deliver;
  readonly logger: Logger;
};

/**
 * A living process answers within milliseconds. If it needs longer than this, it's stopped, or too
 * busy to carry calls.
 */
export const answerTimeoutMs = 1_000;
/** A process that has answered before is gone after this many misses in a row. */
const maxMissed = 3;
/** How long a process may answer without renewing its lease, while this process can renew. */
const yieldAfterMs = 300_000;
/** A process that yields hangs up for 3 s (`src/app/calls.ts`) and exits. */
const yieldTimeoutMs = 10_000;

type Known = {
  /** The last answer. */
  readonly state: AliveState;
  /** How many questions have had no answer since. */
  readonly missed: number;
};

export class LateNodes {
  readonly #ports: LateNodePorts;
  /** The processes that were late in the last sweep and have answered. */
  #known = new Map<string, Known>();

  constructor(ports: LateNodePorts) {
    this.#ports = ports;
  }

  /**
   * Marks the late processes that don't answer as lost, and takes over their calls. Returns their
   * owner ids.
   */
  async expire(): Promise<readonly string[]> {
    const { store } = this.#ports;
    const late = await store.findLate();
    const known = new Map<string, Known>();
    // A cluster has few processes, so we can ask all late ones at once.
    const asking = late.map(async (one) => {
      const now = await this.#ask(one);
      if (now === undefined) return [one.ownerId];
      this.#logChange(one, now.state);
      known.set(one.ownerId, now);
      return [];
    });
    const gone = (await Promise.all(asking)).flat();
    this.#known = known;
    return gone.length === 0 ? [] : await store.expireOthers(gone);
  }

  /** @returns undefined if the process is gone */
  async #ask(late: LateProcess): Promise<Known | undefined> {
    if (late.lateMs > yieldAfterMs + yieldTimeoutMs) return undefined;
    const wants: Wanted = late.lateMs > yieldAfterMs ? 'yield' : 'life';
    const question = createQuestion(late, wants);
    const state = await this.#ports.deliver(late, question, answerTimeoutMs);
    if (state !== undefined) return { state, missed: 0 };
    const before = this.#known.get(late.ownerId);
    // A process that yields exits and then doesn't answer.
    if (before?.state !== 'alive' || before.missed + 1 >= maxMissed) return undefined;
    return { ...before, missed: before.missed + 1 };
  }

  #logChange({ ownerId: node, lateMs }: LateProcess, state: AliveState): void {
    if (this.#known.get(node)?.state === state) return;
    const { logger } = this.#ports;
    if (state === 'alive') {
      logger.warn({ node }, 'a node does not renew its lease, but it answers and keeps its calls');
    } else {
      logger.warn({ node, lateMs }, 'a node could not renew its lease for too long; it hangs up');
    }
  }
}
