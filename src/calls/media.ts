// The seam between a call and its media. All commands and events are declared here and are passed
// to and from the media worker unchanged. If you add a command, the compiler points you to the
// session that must execute it. If you add an event, it points you to the machine states `answered`
// and `closing`, which must handle it.

import type { AmdSettings } from './call-types.ts';
import type { AudioEnvelope } from './capture/capture.ts';
import type { CallId } from './contract/identity.ts';
import type { AmdEvent } from './detection/amd-event.ts';
import type { DetectionStop } from './detection/amd-reasons.ts';
import type { Keys, KeysSent } from './keys/keys.ts';
import type { CallQuality } from './life/call-quality.ts';
import type { CallPlans, PlanReport } from './plans/plans.ts';
import type { Playback, PlaybackReport } from './playback/playback.ts';
import type { RecordingCommand, RecordingReport } from './recording/recording.ts';
import type { StreamReport, StreamSettings } from './stream/stream.ts';
import type { StreamStop } from './stream/stream-reasons.ts';
import type { BridgePhase, TransferFailure } from './transfer/transfer.ts';

/** Commands from a call to its media. */
export type MediaCommand =
  /**
   * Starts detection and its sample clock at the 200 OK. Detection then reports `amd` events,
   * ending with `amd_stopped`.
   */
  | { readonly kind: 'detect'; readonly settings: AmdSettings; readonly plans?: CallPlans }
  /** Ends detection early. If it was running, it still reports `amd_stopped`, with this reason. */
  | { readonly kind: 'stopDetection'; readonly reason: DetectionStop }
  /**
   * ringing: the media resolves the bot's host name and connects, so that the bot is ready when the
   * person answers. answered: the bot joins the call, and can hear and speak.
   */
  | {
      readonly kind: 'stream';
      readonly settings: StreamSettings;
      readonly phase: 'ringing' | 'answered';
    }
  /** Ends the stream and notifies the bot. If the stream was open, it then reports `stopped`. */
  | { readonly kind: 'stopStream'; readonly reason: StreamStop }
  /**
   * Opens or closes the stream's gate. While the gate is closed, the bot hears silence and receives
   * no keys.
   */
  | { readonly kind: 'gateStream'; readonly isGated: boolean }
  /**
   * Queues a sound behind those already waiting. If a looping sound is playing, it ends to make way
   * for the new one.
   */
  | { readonly kind: 'play'; readonly playback: Playback }
  /** Queues key presses behind those already being sent. */
  | { readonly kind: 'press'; readonly keys: Keys }
  /**
   * Drops all queued sounds, bot audio and keys. Every sound and `press` command still reports its
   * end. The announcement before a recording plays on, unless the call ends (`isEnd`).
   */
  | { readonly kind: 'stopPlayback'; readonly isEnd?: true }
  /** Passes a key that arrived by SIP INFO on to the bot. */
  | { readonly kind: 'sendDigit'; readonly digit: string }
  /** Tells the bot that the transfer failed and that it has the call again. */
  | { readonly kind: 'reportTransferFailure'; readonly failure: TransferFailure }
  /** Starts, pauses, resumes or stops the recording. Once started, it reports its end. */
  | ({ readonly kind: 'record' } & RecordingCommand)
  /** Asks for one `envelope` event. */
  | { readonly kind: 'requestEnvelope' }
  /** Asks for one `quality` event. */
  | { readonly kind: 'requestQuality' };

/** Reports from the media to its call. */
export type MediaEvent =
  | { readonly kind: 'amd'; readonly amd: AmdEvent }
  /** A key press that arrived as RTP events (RFC 4733). */
  | { readonly kind: 'dtmf'; readonly digit: string; readonly durationMs: number }
  /** `ordinal` identifies the stream within the call. */
  | { readonly kind: 'stream'; readonly ordinal: number; readonly report: StreamReport }
  | { readonly kind: 'playback'; readonly report: PlaybackReport }
  | { readonly kind: 'keysSent'; readonly report: KeysSent }
  | { readonly kind: 'plan'; readonly report: PlanReport }
  | { readonly kind: 'recording'; readonly report: RecordingReport }
  /** The first sound of a bot, rather than silence, is being sent. Reported once per call. */
  | { readonly kind: 'botSpoke' }
  /**
   * Loudness of both sides so far. Reported on `requestEnvelope` and when the session ends.
   * Undefined before the answer.
   */
  | { readonly kind: 'envelope'; readonly envelope: AudioEnvelope | undefined }
  /** How the call has sounded so far. Undefined if the far end hasn't sent any audio. */
  | { readonly kind: 'quality'; readonly quality: CallQuality | undefined }
  /** Audio has gone both ways over a bridge. Only a second leg's session reports this. */
  | { readonly kind: 'connected' }
  /** No packet arrived for the entire inactivity time-out, and the call wasn't on hold. */
  | { readonly kind: 'inactive' }
  /** The session is gone, because its sockets or its worker failed. */
  | { readonly kind: 'failed'; readonly reason: string };

export type MediaObserver = { observe(event: MediaEvent): void };

/** The two variants of G.711 (µ-law and A-law), which every carrier supports. */
export type VoiceCodec = 'PCMU' | 'PCMA';

/**
 * Whether a leg's audio is encrypted (SRTP with the keys in the SDP, RFC 4568).
 * - rtp: never.
 * - srtp: if the far end accepts it (RFC 8643).
 * - srtp-required: always; a far end that doesn't accept it can't be called.
 */
export const mediaEncryptions = ['rtp', 'srtp', 'srtp-required'] as const;
export type MediaEncryption = (typeof mediaEncryptions)[number];

/** What we offer to the far end. */
export type MediaOffer = {
  /** In order of preference. */
  readonly codecs: readonly VoiceCodec[];
  readonly encryption: MediaEncryption;
};

export type MediaPort = {
  /**
   * Opens a port pair with its sockets. Default: both codecs, µ-law first, without encryption.
   *
   * @returns undefined if no port is free or the sockets can't be opened (logged)
   */
  open(
    callId: CallId,
    observer: MediaObserver,
    offer?: MediaOffer,
  ): Promise<MediaSession | undefined>;
};

/**
 * - unusable: the SDP contains no usable codec or address.
 * - unencrypted: it does, but the key of a far end that must encrypt is absent or unusable.
 */
export type AnswerResult = 'applied' | 'unusable' | 'unencrypted';

/** The reason for a failed call, after the status of the answer. */
export const answerProblems: Readonly<Record<Exclude<AnswerResult, 'applied'>, string>> = {
  unusable: 'OK without usable SDP',
  unencrypted: 'OK without a usable SRTP key',
};

export type MediaSession = {
  readonly offerSdp: string;
  /**
   * Applies the far end's SDP, from an 18x (`early`), from the 200 OK or from the ACK that answers
   * a later offer (`answer`).
   */
  applyAnswer(sdp: string, phase: 'early' | 'answer'): AnswerResult;
  /**
   * Answers a re-offer from the far end (hold, resume, new address).
   *
   * @returns undefined if the SDP doesn't contain anything usable
   */
  answerReoffer(sdp: string): string | undefined;
  /**
   * Returns a further offer, for a re-INVITE without one. It contains everything that the first
   * offer did. The media stays as it is until `applyAnswer`.
   */
  offerAgain(): string;
  /** Whether the far end accepts keys as RTP events, according to its last SDP. */
  acceptsKeys(): boolean;
  send(command: MediaCommand): void;
  /**
   * Opens a session for a second leg, which can be bridged to this one.
   *
   * @returns undefined if no session can be opened
   */
  openPartner(observer: MediaObserver, offer: MediaOffer): Promise<PartnerSession | undefined>;
  /** Closes the sockets and, once its port is drained, returns the port to the pool. Idempotent. */
  close(): void;
};

/** The session of a second leg. Closing it ends the bridge. */
export type PartnerSession = Omit<MediaSession, 'openPartner'> & {
  /** Sets what the two ends can hear of each other. */
  bridge(phase: BridgePhase): void;
};
