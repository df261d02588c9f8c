// The `play` and `stop` commands. A sound starts loading when its command arrives, but sounds still
// play in the order of their commands.

import { within } from '../../lib/within.ts';
import type { CommandOf, CommandReply } from '../contract/command.ts';
import type { LiveCall } from '../life/call-registry.ts';
import { type CommandHandler, invalidCommand } from '../life/command-handler.ts';
import type { Clock, SoundPort } from '../ports.ts';
import { publicNameOf, soundNotReachable } from './sound-reference.ts';

export type PlayingPorts = {
  readonly sounds: SoundPort;
  readonly clock: Clock;
  /** Whether the sound may be fetched from the address in its URL. */
  readonly isSoundReachable: (reference: string) => boolean;
};

/**
 * Maximum time for which a command's reply is held back until its sound has loaded. The sender
 * itself waits for 2 s. A stored sound usually loads well within this time, so the reply can also
 * report that the sound doesn't exist.
 */
const replyTimeoutMs = 1_000;

type CallPlayingPorts = { readonly playing: CallPlaying };

export const playHandler: CommandHandler<'play', CallPlayingPorts> = {
  note: ({ sound, loop }) => `play ${publicNameOf(sound)}${loop === true ? ', looped' : ''}`,
  execute: (command, { live, commandId, ports }) => ports.playing.play(live, command, commandId),
};

export const stopHandler: CommandHandler<'stop', CallPlayingPorts> = {
  note: () => 'stop',
  execute(_command, { live, commandId, ports }) {
    ports.playing.stop(live);
    return { ok: true, commandId, state: live.state };
  },
};

/** Plays a call's sounds as commands ask for them. */
export class CallPlaying {
  readonly #ports: PlayingPorts;
  /** Settles once all earlier sounds have been passed to the media worker. */
  #last: Promise<void> = Promise.resolve();
  /**
   * Number of `stop` commands so far. A sound requested before a stop must not be played after it.
   */
  #stops = 0;

  constructor(ports: PlayingPorts) {
    this.#ports = ports;
  }

  async play(
    live: LiveCall,
    command: CommandOf<'play'>,
    playbackId: string,
  ): Promise<CommandReply> {
    if (!this.#ports.isSoundReachable(command.sound)) {
      return invalidCommand([{ path: 'sound', message: soundNotReachable }]);
    }
    const loading = this.#ports.sounds.loadSound(live.call.accountId, command.sound);
    const early = within(loading, replyTimeoutMs);
    const stops = this.#stops;
    this.#last = this.#last.then(async () => {
      // The command's reply has already reported the failure.
      if ((await early)?.ok === false) return;
      const result = await loading;
      if (!result.ok || stops !== this.#stops) {
        this.#reportUnplayed(live, command, playbackId, result.ok ? 'stopped' : 'failed');
        return;
      }
      const { sound } = result;
      const loop = command.loop === true ? { loop: true } : {};
      const playback = { playbackId, source: 'command', sound, ...loop } as const;
      live.send({ type: 'command.media', command: { kind: 'play', playback } });
    });
    const earlyResult = await early;
    if (earlyResult?.ok === false) return { ok: false, code: 'sound', error: earlyResult.reason };
    return { ok: true, commandId: playbackId, state: 'answered' };
  }

  stop(live: LiveCall): void {
    this.#stops += 1;
    live.send({ type: 'command.media', command: { kind: 'stopPlayback' } });
  }

  #reportUnplayed(
    live: LiveCall,
    { sound }: CommandOf<'play'>,
    playbackId: string,
    reason: 'stopped' | 'failed',
  ): void {
    const identity = { playbackId, source: 'command', sound: publicNameOf(sound) } as const;
    live.send({
      type: 'media.playback',
      kind: 'playback',
      at: this.#ports.clock.now(),
      report: { kind: 'finished', ...identity, reason, playedMs: 0 },
    });
  }
}
