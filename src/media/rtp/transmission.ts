// What a call sends: every 20 ms a key, a sound, what its bot says, or silence; or the packets of a bridge's other end, at once.

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
  /** What comes from the other end of a bridge. */
  #relay: RtpRelay | undefined;
  /** Undefined before the answer, as `#envelope` is: nothing is sent until then. */
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

  /** The power of the sound in the last packet (1: full scale), 0 if it had none: what an echo of it may bring back. */
  get soundPower(): number {
    return this.#soundPower;
  }

  /** Nothing but silence is to be said. */
  get isQuiet(): boolean {
    return this.player.isUnused && !this.#keys.isPressing;
  }

  /** The answer, or what a re-offer came to. */
  apply(remote: RemoteMedia, envelope: EnvelopeRecorder, isElsewhere: boolean): void {
    this.#remote = remote;
    this.#envelope = envelope;
    if (isElsewhere) this.#silence.restart();
  }

  press(keys: Keys): void {
    this.#keys.press(keys);
  }

  /** Nothing of what was asked for is sent any more: keys, sounds, what the bot has said. */
  stop(): void {
    this.#keys.stop();
    this.player.stop();
    this.player.clearBot();
  }

  /** What another far end says is sent in place of all that we say. `onFirst`: the first packet of it has left. */
  startRelay(onFirst: () => void): void {
    this.#relay = new RtpRelay(this.#sender, onFirst);
  }

  stopRelay(): void {
    this.#relay = undefined;
  }

  /** A packet of the other end of the bridge. */
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

  /** 20 ms have passed. `isInTime` is false for the ticks of a late clock that would only make a burst. */
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
      // Another leg speaks, or a key is pressed: what the bot says meanwhile is over then.
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
    // What a late clock held up is said later.
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
