// The seam between a call and its media. Each command and each event is declared once, here, and
// crosses to or from the media worker unchanged. For a new command, the compiler names the session
// that must execute it. For a new event, it names the states `answered` and `closing` of the machine,
// which must take it.

import type { AmdSettings } from './call-types.ts';
import type { AudioEnvelope } from './capture/capture.ts';
import type { CallId } from './contract/identity.ts';
import type { AmdEvent } from './detection/amd-event.ts';
import type { Keys, KeysSent } from './keys/keys.ts';
import type { CallPlans, PlanReport } from './plans/plans.ts';
import type { Playback, PlaybackReport } from './playback/playback.ts';
import type { StreamReport, StreamSettings } from './stream/stream.ts';
import type { BridgePhase, TransferFailure } from './transfer/transfer.ts';

/** Commands of a call to its media. */
export type MediaCommand =
  /**
   * Starts detection and its sample clock, at the 200 OK. Its events follow, with `amd_stopped`
   * last.
   */
  | { readonly kind: 'detect'; readonly settings: AmdSettings; readonly plans?: CallPlans }
  /** Ends detection early. A detection that ran still reports `amd_stopped` with this reason. */
  | { readonly kind: 'stopDetection'; readonly reason: string }
  /**
   * ringing: the media resolves the bot's name and connects, so that the bot is there at the
   * answer. answered: the bot gets the call, hears and speaks.
   */
  | {
      readonly kind: 'stream';
      readonly settings: StreamSettings;
      readonly phase: 'ringing' | 'answered';
    }
  /** Tells the bot that its stream is over. An open stream reports `stopped`. */
  | { readonly kind: 'stopStream'; readonly reason: string }
  /**
   * Opens or closes the gate of the stream. While it is closed, the bot hears silence and gets no
   * keys.
   */
  | { readonly kind: 'gateStream'; readonly isGated: boolean }
  /** Queues a sound behind the waiting ones. A loop ends to make room for it. */
  | { readonly kind: 'play'; readonly playback: Playback }
  /** Queues keys behind those that are being pressed. */
  | { readonly kind: 'press'; readonly keys: Keys }
  /**
   * Drops what is queued: sounds, the bot's audio, keys. Each sound and each command of keys
   * reports its end.
   */
  | { readonly kind: 'stopPlayback' }
  /** Sends the bot a key that came by SIP INFO. */
  | { readonly kind: 'sendDigit'; readonly digit: string }
  /** Tells the bot that the transfer failed and that the call goes on with it. */
  | { readonly kind: 'reportTransferFailure'; readonly failure: TransferFailure }
  /** Asks for one `envelope`. */
  | { readonly kind: 'requestEnvelope' };

/** What the media reports to its call. */
export type MediaEvent =
  | { readonly kind: 'amd'; readonly amd: AmdEvent }
  /** A key that came as RTP events (RFC 4733). */
  | { readonly kind: 'dtmf'; readonly digit: string; readonly durationMs: number }
  /** `ordinal` identifies the stream within the call. */
  | { readonly kind: 'stream'; readonly ordinal: number; readonly report: StreamReport }
  | { readonly kind: 'playback'; readonly report: PlaybackReport }
  | { readonly kind: 'keysSent'; readonly report: KeysSent }
  | { readonly kind: 'plan'; readonly report: PlanReport }
  /**
   * How loud both sides were so far. Reported after `requestEnvelope` and at the end of the session.
   * Undefined before the answer.
   */
  | { readonly kind: 'envelope'; readonly envelope: AudioEnvelope | undefined }
  /** Audio has gone both ways over a bridge. Only the session of a second leg reports it. */
  | { readonly kind: 'connected' }
  /** No packet came for the whole inactivity time-out, and the call was not on hold. */
  | { readonly kind: 'inactive' }
  /** The session is gone, because its sockets or its worker failed. */
  | { readonly kind: 'failed'; readonly reason: string };

export type MediaObserver = { observe(event: MediaEvent): void };

/** The two laws of G.711, which every carrier speaks. */
export type VoiceCodec = 'PCMU' | 'PCMA';

export type MediaPort = {
  /**
   * Opens a port pair with its sockets, and offers these codecs in this order. Default: both, µ-law
   * first.
   *
   * @returns undefined if no port is free or the sockets cannot be opened (logged)
   */
  open(
    callId: CallId,
    observer: MediaObserver,
    codecs?: readonly VoiceCodec[],
  ): Promise<MediaSession | undefined>;
};

export type MediaSession = {
  readonly offerSdp: string;
  /**
   * Applies the far end's SDP: early (18x) or of the answer.
   *
   * @returns false if no codec or address in it is usable
   */
  applyAnswer(sdp: string, phase: 'early' | 'answer'): boolean;
  /**
   * Answers a re-offer of the far end (hold, resume, new address).
   *
   * @returns undefined if nothing in it is usable
   */
  answerReoffer(sdp: string): string | undefined;
  /** Whether the far end takes keys as RTP events, by its last SDP. */
  acceptsKeys(): boolean;
  send(command: MediaCommand): void;
  /**
   * Opens the session of a second leg beside this one.
   *
   * @returns undefined if no session can be opened
   */
  openPartner(
    observer: MediaObserver,
    codecs: readonly VoiceCodec[],
  ): Promise<PartnerSession | undefined>;
  /** Closes the sockets and gives the port back (drained). Idempotent. */
  close(): void;
};

/** The session of a second leg. Closing it ends the bridge. */
export type PartnerSession = Omit<MediaSession, 'openPartner'> & {
  /** Sets how much of each other the two ends hear. */
  bridge(phase: BridgePhase): void;
};
