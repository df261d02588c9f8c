// The sending side of a call. Every 20 ms it sends a key, a sound, the bot's audio, or silence. In
// a bridge, it instead relays the packets from the other end as they arrive.

import type { Keys, KeysSent } from '../../calls/keys/keys.ts';
import type { PlaybackReport } from '../../calls/playback/playback.ts';
import type { EnvelopeRecorder } from '../envelope-recorder.ts';
import { powerOf } from '../g711.ts';
import { SoundPlayer } from '../playout/sound-player.ts';
import type { RemoteMedia } from '../sdp.ts';
import type { SessionRecording } from '../session-recording.ts';
import { SrtpCounters, type SrtpSender, senderFor } from '../srtp/srtp-sender.ts';
import { KeySender } from './key-sender.ts';
import { PacketSplitter } from './packet-splitter.ts';
import { type RtpHeader, rtpHeaderBytes } from './rtp-packet.ts';
import { RtpRelay } from './rtp-relay.ts';
import { RtpSender, SilencePacing } from './rtp-sender.ts';
import type { PacketKind, RtpCounts, RtpSessionOptions } from './rtp-session-ports.ts';

type TransmissionSink = {
  send(packet: Uint8Array): void;
  /** Counts a packet, without the tag of SRTP. */
  onSent(bytes: number): void;
  onPlayback(report: PlaybackReport): void;
  onBotSpoke(): void;
  onKeysSent(report: KeysSent): void;
};

export class Transmission {
  readonly #counts: RtpCounts;
  readonly #sink: TransmissionSink;
  readonly #recording: SessionRecording;
  readonly #sender: RtpSender;
  readonly #silence: SilencePacing;
  readonly #keys: KeySender;
  readonly player: SoundPlayer;
  /**
   * Rewrites packets from the other end of the bridge. Undefined if we aren't relaying anything.
   */
  #relay: RtpRelay | undefined;
  /**
   * The far end's description. Like `#envelope`, it's undefined until the answer, and we don't send
   * anything before that.
   */
  #remote: RemoteMedia | undefined;
  #envelope: EnvelopeRecorder | undefined;
  /** Undefined unless the audio is encrypted. */
  #srtp: SrtpSender | undefined;
  readonly #srtpCounters = new SrtpCounters();
  readonly #splitter = new PacketSplitter((packet) => this.#sendPart(packet));
  #soundPower = 0;

  constructor(options: RtpSessionOptions, recording: SessionRecording, sink: TransmissionSink) {
    this.#counts = options.counts;
    this.#recording = recording;
    this.#sink = sink;
    this.#sender = new RtpSender(options);
    this.#silence = new SilencePacing(options.silenceFrames);
    this.#keys = new KeySender(this.#sender, (report) => sink.onKeysSent(report));
    this.player = new SoundPlayer(
      (report) => sink.onPlayback(report),
      () => sink.onBotSpoke(),
    );
  }

  /**
   * Power of the sound in the last packet (1: full scale, 0: no sound). An echo of the sound can't
   * be louder than this.
   */
  get soundPower(): number {
    return this.#soundPower;
  }

  /** The current timestamp of our packets. */
  get timestamp(): number {
    return this.#sender.clockTimestamp;
  }

  /** Encrypts a report, if the audio is encrypted. */
  protectRtcp(report: Uint8Array): Uint8Array {
    return this.#srtp?.protectRtcp(report) ?? report;
  }

  /** Applies the far end's description from the answer or a later re-offer. */
  apply(remote: RemoteMedia, envelope: EnvelopeRecorder, mayHaveMoved: boolean): void {
    this.#remote = remote;
    this.#envelope = envelope;
    this.#srtp = senderFor(remote.srtp?.ours, this.#srtp, this.#srtpCounters);
    if (mayHaveMoved) this.#silence.restart();
  }

  press(keys: Keys): void {
    this.#keys.press(keys);
  }

  /** Drops all queued keys, sounds and bot audio. `isEnd` is true if the call ends. */
  stop(isEnd: boolean): void {
    this.#keys.stop();
    this.player.stop(isEnd);
    this.player.clearBot();
  }

  /**
   * Starts relaying packets from another far end, which replace our own audio. `onFirst` is called
   * when the first audio packet is relayed.
   */
  startRelay(onFirst: () => void): void {
    this.#relay = new RtpRelay(this.#sender, onFirst);
  }

  stopRelay(): void {
    this.#relay = undefined;
  }

  /** Relays a packet from the other end of the bridge. Has no effect unless a relay is running. */
  relayPacket(packet: Uint8Array, header: RtpHeader, kind: Exclude<PacketKind, 'noise'>): void {
    const [remote, relay] = [this.#remote, this.#relay];
    if (relay === undefined || remote?.weSend !== true) return;
    if (kind === 'event') {
      const relayed = relay.event(packet, header, remote);
      if (relayed !== undefined) this.#send(relayed);
      return;
    }
    // Nobody talks over the announcement before a recording, which an agent may have interrupted.
    if (this.player.isAnnouncing) return;
    const relayed = relay.audio(packet, header, kind, remote);
    if (relayed !== undefined) this.#sendAudio(relayed, remote);
  }

  /**
   * Advances the transmission by 20 ms. `isInTime` is false if the clock is so late that packets
   * sent in this tick would only add to a burst.
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
      // Either we're relaying the other leg's audio, or a key is being pressed. The bot's audio is
      // discarded in the meantime.
      this.#sender.skip();
      this.#silence.restart();
      this.player.skipFrame();
    } else this.#sendOwnAudio(remote, isInTime);
    this.player.returnMarks();
  }

  #sendOwnAudio(remote: RemoteMedia, isInTime: boolean): void {
    const isSilent = remote.weSend && this.player.isUnused;
    if (!this.#silence.isDue(isSilent)) {
      this.#sender.skip();
      return;
    }
    if (remote.weSend && isInTime) {
      const { isPlaying } = this.player;
      const packet = this.#sender.next(remote, this.player);
      if (isPlaying) this.#soundPower = powerOf(packet.subarray(rtpHeaderBytes), remote.codec);
      this.#sendAudio(packet, remote);
      return;
    }
    this.#sender.skip();
    // While the clock is late, our audio stays queued.
    if (remote.weSend) this.#counts.unsent += 1;
    else this.player.skipFrame();
  }

  #sendAudio(packet: Uint8Array, remote: RemoteMedia): void {
    this.#envelope?.say(packet, rtpHeaderBytes, remote.codec);
    this.#recording.say(packet, remote.codec);
    this.#send(packet, remote.maxPacketSamples);
  }

  #send(packet: Uint8Array, maxSamples?: number): void {
    this.#splitter.send(packet, maxSamples);
  }

  #sendPart(packet: Uint8Array): void {
    this.#counts.sent += 1;
    this.#sink.onSent(packet.length);
    this.#sink.send(this.#srtp?.protect(packet) ?? packet);
  }
}
