// The sending side of a call. Every 20 ms it sends a key, a sound, the bot's audio, or silence. In
// a bridge it sends the packets of the other end at once.

import type { Keys, KeysSent } from '../../calls/keys/keys.ts';
import type { PlaybackReport } from '../../calls/playback/playback.ts';
import type { EnvelopeRecorder } from '../envelope-recorder.ts';
import { powerOf } from '../g711.ts';
import { SoundPlayer } from '../playout/sound-player.ts';
import type { RemoteMedia } from '../sdp.ts';
import { KeySender } from './key-sender.ts';
import { type RtpHeader, rtpHeaderBytes } from './rtp-packet.ts';
import { RtpRelay } from './rtp-relay.ts';
import { RtpSender, SilencePacing } from './rtp-sender.ts';
import type { PacketKind, RtpCounts, RtpSessionOptions } from './rtp-session-ports.ts';

type TransmissionSink = {
  send(packet: Uint8Array): void;
  onPlayback(report: PlaybackReport): void;
  onKeysSent(report: KeysSent): void;
};

export class Transmission {
  readonly #counts: RtpCounts;
  readonly #sink: TransmissionSink;
  readonly #sender: RtpSender;
  readonly #silence: SilencePacing;
  readonly #keys: KeySender;
  readonly player: SoundPlayer;
  /** Rewrites the packets of the other end of a bridge. */
  #relay: RtpRelay | undefined;
  /**
   * The far end's description. Undefined before the answer, like `#envelope`: nothing is sent until
   * then.
   */
  #remote: RemoteMedia | undefined;
  #envelope: EnvelopeRecorder | undefined;
  #soundPower = 0;

  constructor(options: RtpSessionOptions, sink: TransmissionSink) {
    this.#counts = options.counts;
    this.#sink = sink;
    this.#sender = new RtpSender(options);
    this.#silence = new SilencePacing(options.silenceFrames);
    this.#keys = new KeySender(this.#sender, (report) => sink.onKeysSent(report));
    this.player = new SoundPlayer((report) => sink.onPlayback(report));
  }

  /**
   * The power of the sound in the last packet (1: full scale, 0: no sound). Its echo is not louder
   * than that.
   */
  get soundPower(): number {
    return this.#soundPower;
  }

  /** Whether only silence is sent. */
  get isQuiet(): boolean {
    return this.player.isUnused && !this.#keys.isPressing;
  }

  /** Takes the far end's description in the answer or in a later re-offer. */
  apply(remote: RemoteMedia, envelope: EnvelopeRecorder, isElsewhere: boolean): void {
    this.#remote = remote;
    this.#envelope = envelope;
    if (isElsewhere) this.#silence.restart();
  }

  press(keys: Keys): void {
    this.#keys.press(keys);
  }

  /** Drops everything that waits to be sent: keys, sounds, the bot's audio. */
  stop(): void {
    this.#keys.stop();
    this.player.stop();
    this.player.clearBot();
  }

  /**
   * Sends the packets of another far end in place of our own. `onFirst` is called after the first
   * one was sent.
   */
  startRelay(onFirst: () => void): void {
    this.#relay = new RtpRelay(this.#sender, onFirst);
  }

  stopRelay(): void {
    this.#relay = undefined;
  }

  /** Sends a packet of the other end of the bridge. */
  passOn(packet: Uint8Array, header: RtpHeader, kind: Exclude<PacketKind, 'noise'>): void {
    const [remote, relay] = [this.#remote, this.#relay];
    if (relay === undefined || remote?.weSend !== true) return;
    if (kind === 'event') {
      const relayed = relay.event(packet, header, remote);
      if (relayed !== undefined) this.#send(relayed);
      return;
    }
    const relayed = relay.audio(packet, header, kind, remote);
    if (relayed !== undefined) this.#say(relayed, remote);
  }

  /**
   * Advances the transmission by 20 ms. `isInTime` is false if the clock is so late that packets of
   * this tick would only add to a burst.
   */
  tick(isInTime: boolean): void {
    this.#sender.tick();
    this.#relay?.tick();
    const remote = this.#remote;
    if (remote === undefined) return;
    this.#envelope?.tick();
    const isRelayed = this.#relay?.isFlowing === true;
    const key = remote.weSend && isInTime ? this.#keys.next(remote, isRelayed) : undefined;
    if (key !== undefined) this.#send(key);
    this.#soundPower = 0;
    if (isRelayed || key !== undefined) {
      // Another leg speaks, or a key is pressed. What the bot says meanwhile is discarded.
      this.#sender.skip();
      this.#silence.restart();
      this.player.pass();
    } else this.#speak(remote, isInTime);
    this.player.returnMarks();
  }

  #speak(remote: RemoteMedia, isInTime: boolean): void {
    const isSilent = remote.weSend && this.player.isUnused;
    if (!this.#silence.isDue(isSilent)) {
      this.#sender.skip();
      return;
    }
    if (remote.weSend && isInTime) {
      const { isPlaying } = this.player;
      const packet = this.#sender.next(remote, this.player);
      if (isPlaying) this.#soundPower = powerOf(packet.subarray(rtpHeaderBytes), remote.codec);
      this.#say(packet, remote);
      return;
    }
    this.#sender.skip();
    // Audio that a late clock held up is sent later.
    if (remote.weSend) this.#counts.unsent += 1;
    else this.player.pass();
  }

  #say(packet: Uint8Array, remote: RemoteMedia): void {
    this.#envelope?.say(packet, rtpHeaderBytes, remote.codec);
    this.#send(packet);
  }

  #send(packet: Uint8Array): void {
    this.#counts.sent += 1;
    this.#sink.send(packet);
  }
}
