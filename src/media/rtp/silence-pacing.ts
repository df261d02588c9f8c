// How often silence is sent while our side is silent, without bot, message and ringback: RFC 3551, 4.1, lets a sender leave it out, and
// half of what a call costs that is only listened to would be packets of nothing. Some go out all the same: they keep what is
// open in NATs and session border controllers (RFC 6263), and tell those that count packets that the line is alive.

import { tickMs } from '../playout/playout.ts';

/** From the answer on, and after a voice of ours: who latches to the first packets, or fills a jitter buffer, has all of them. */
const continuousTicks = 1_000 / tickMs;

export class SilencePacing {
  readonly #everyTicks: number;
  #silentTicks = 0;

  /** `everyTicks` 1: all of it is sent. */
  constructor(everyTicks: number) {
    this.#everyTicks = everyTicks;
  }

  /** Something else was sent, or another far end listens. */
  restart(): void {
    this.#silentTicks = 0;
  }

  /** Once a tick: whether the packet of this one leaves. */
  isDue(isSilent: boolean): boolean {
    this.#silentTicks = isSilent ? this.#silentTicks + 1 : 0;
    return this.#silentTicks <= continuousTicks || this.#silentTicks % this.#everyTicks === 0;
  }
}
