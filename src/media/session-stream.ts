// The bot of a session: whether there is one, what it may hear and say, and which events of the call reach it.

import type { AmdEvent } from '../calls/detection/amd-event.ts';
import type { TransferFailure } from '../calls/transfer/transfer.ts';
import type { PlayoutQueue } from './playout/playout-queue.ts';
import type { SoundPlayer } from './playout/sound-player.ts';
import type { BotStream } from './stream-port.ts';

/** The stream of a bot, and the audio that it has queued. */
type Streaming = { readonly stream: BotStream; readonly queue: PlayoutQueue };

export class SessionStream {
  readonly #player: SoundPlayer;
  #streaming: Streaming | undefined;
  /** The bot hears nothing of the call, and no key. */
  #isGated = false;
  #isMuted = false;
  /** Events of detection so far, a dozen at most. A bot that comes later gets them first. */
  readonly #amdEvents: AmdEvent[] = [];

  constructor(player: SoundPlayer) {
    this.#player = player;
  }

  /** A bot has the call, or will have it. */
  get isOn(): boolean {
    return this.#streaming !== undefined;
  }

  get stream(): BotStream | undefined {
    return this.#streaming?.stream;
  }

  /** What is queued is played from the answer on; what is heard goes to the stream from then on. */
  start(stream: BotStream, queue: PlayoutQueue): void {
    queue.mute(this.#isMuted);
    for (const event of this.#amdEvents) stream.tellAmd(event);
    this.#streaming = { stream, queue };
    this.#player.attach(queue);
  }

  /** Ends the stream and drops what the bot has queued. */
  stop(reason: string): void {
    this.#streaming?.stream.stop(reason);
    this.#streaming?.queue.close();
    this.#streaming = undefined;
    this.#player.attach(undefined);
  }

  /** A muted bot is not heard. */
  mute(isMuted: boolean): void {
    this.#isMuted = isMuted;
    this.#streaming?.queue.mute(isMuted);
  }

  /** While the gate is closed, the bot hears nothing: what a person says to an agent is not for it. */
  gate(isClosed: boolean): void {
    this.#isGated = isClosed;
  }

  hear(mulaw: Uint8Array, silence: Uint8Array): void {
    this.#streaming?.stream.hear(this.#isGated ? silence : mulaw);
  }

  tellDigit(digit: string): void {
    if (!this.#isGated) this.#streaming?.stream.tellDigit(digit);
  }

  tellAmd(event: AmdEvent): void {
    this.#amdEvents.push(event);
    this.#streaming?.stream.tellAmd(event);
  }

  tellTransferFailed(failure: TransferFailure): void {
    this.#streaming?.stream.tellTransferFailed(failure);
  }

  tick(): void {
    this.#streaming?.stream.tick();
  }
}
