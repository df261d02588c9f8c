// A session's connection to its bot. Controls what the bot hears, whether the bot's audio is
// played, and which events of the call it receives.

import type { AmdEvent } from '../calls/detection/amd-event.ts';
import type { TransferFailure } from '../calls/transfer/transfer.ts';
import type { PlayoutQueue } from './playout/playout-queue.ts';
import type { SoundPlayer } from './playout/sound-player.ts';
import type { BotStream } from './stream-port.ts';

type Streaming = { readonly stream: BotStream; readonly queue: PlayoutQueue };

export class SessionStream {
  readonly #player: SoundPlayer;
  #streaming: Streaming | undefined;
  /** While true, the bot receives silence and no keys. */
  #isGated = false;
  /** While true, the bot's audio is discarded. */
  #isMuted = false;
  /** Events of detection so far, a dozen at most. A bot that joins later receives them first. */
  readonly #amdEvents: AmdEvent[] = [];

  constructor(player: SoundPlayer) {
    this.#player = player;
  }

  /** Whether the call has a bot, or will have one after the answer. */
  get isActive(): boolean {
    return this.#streaming !== undefined;
  }

  get stream(): BotStream | undefined {
    return this.#streaming?.stream;
  }

  /**
   * Gives the call a bot. From the answer on, the bot's queued audio is played, and the stream
   * receives what the far end says.
   */
  start(stream: BotStream, queue: PlayoutQueue): void {
    queue.mute(this.#isMuted);
    for (const event of this.#amdEvents) stream.sendAmd(event);
    this.#streaming = { stream, queue };
    this.#player.attach(queue);
  }

  /** Ends the stream and drops the bot's queued audio. */
  stop(reason: string): void {
    this.#streaming?.stream.stop(reason);
    this.#streaming?.queue.close();
    this.#streaming = undefined;
    this.#player.attach(undefined);
  }

  /** Mutes or unmutes the bot. The audio of a muted bot is discarded. */
  mute(isMuted: boolean): void {
    this.#isMuted = isMuted;
    this.#streaming?.queue.mute(isMuted);
  }

  /**
   * Closes or opens the gate. While it is closed, the bot hears only silence: what a person says to
   * an agent is not meant for the bot.
   */
  gate(isClosed: boolean): void {
    this.#isGated = isClosed;
  }

  hear(mulaw: Uint8Array, silence: Uint8Array): void {
    this.#streaming?.stream.hear(this.#isGated ? silence : mulaw);
  }

  sendDigit(digit: string): void {
    if (!this.#isGated) this.#streaming?.stream.sendDigit(digit);
  }

  sendAmd(event: AmdEvent): void {
    this.#amdEvents.push(event);
    this.#streaming?.stream.sendAmd(event);
  }

  sendTransferFailed(failure: TransferFailure): void {
    this.#streaming?.stream.sendTransferFailed(failure);
  }

  tick(): void {
    this.#streaming?.stream.tick();
  }
}
