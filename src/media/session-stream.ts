// A session's connection to its bot. It controls what the bot can hear, whether we play the bot's
// audio, and which of the call's events the bot receives.

import type { AmdEvent } from '../calls/detection/amd-event.ts';
import type { StreamStop } from '../calls/stream/stream-reasons.ts';
import type { TransferFailure } from '../calls/transfer/transfer.ts';
import type { PlayoutQueue } from './playout/playout-queue.ts';
import type { SoundPlayer } from './playout/sound-player.ts';
import type { BotStream } from './stream-port.ts';

type Streaming = { readonly stream: BotStream; readonly queue: PlayoutQueue };

export class SessionStream {
  readonly #player: SoundPlayer;
  #streaming: Streaming | undefined;
  /** While this is true, the bot receives silence and no keys. */
  #isGated = false;
  /** While this is true, we discard the bot's audio. */
  #isMuted = false;
  /**
   * Detection events so far, a dozen at most. A bot that joins later receives all of them first.
   */
  readonly #amdEvents: AmdEvent[] = [];

  constructor(player: SoundPlayer) {
    this.#player = player;
  }

  /** True if the call has a bot, or will have one after the answer. */
  get isActive(): boolean {
    return this.#streaming !== undefined;
  }

  get stream(): BotStream | undefined {
    return this.#streaming?.stream;
  }

  /**
   * Gives the call a bot. From the answer on, we play the bot's queued audio, and the stream
   * receives the far end's audio.
   */
  start(stream: BotStream, queue: PlayoutQueue): void {
    queue.mute(this.#isMuted);
    for (const event of this.#amdEvents) stream.sendAmd(event);
    this.#streaming = { stream, queue };
    this.#player.attach(queue);
  }

  /** Ends the stream and drops the bot's queued audio. */
  stop(reason: StreamStop): void {
    this.#streaming?.stream.stop(reason);
    this.#streaming?.queue.close();
    this.#streaming = undefined;
    this.#player.attach(undefined);
  }

  /** Mutes or unmutes the bot. A muted bot's audio is discarded. */
  mute(isMuted: boolean): void {
    this.#isMuted = isMuted;
    this.#streaming?.queue.mute(isMuted);
  }

  /**
   * Closes or opens the gate. While the gate is closed, the bot hears only silence, because the bot
   * shouldn't hear what a person says to an agent.
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
