// The part of a line that knows how its call is recorded. Everything is ready before the call is
// dialled: the announcement is loaded and the key is usable, or else the call isn't dialled.

import type { AcceptedCall } from '../call-types.ts';
import type { MediaSession } from '../media.ts';
import { loadRequestedSound } from '../playback/load-sound.ts';
import type { Sound } from '../playback/playback.ts';
import type { RecordingPort, SoundPort } from '../ports.ts';
import {
  defaultRecording,
  type RecordingBegin,
  type RecordingEncryption,
  type RecordingReport,
} from './recording.ts';

export const recordingNotice = 'recording';

type Ready =
  | { readonly ok: true }
  /** `reason` is meant for people. */
  | { readonly ok: false; readonly reason: string };

type Session = Pick<MediaSession, 'send'>;

export class LineRecording {
  readonly #call: AcceptedCall;
  readonly #port: RecordingPort | undefined;
  #notice: Sound | undefined;
  #encryption: RecordingEncryption | undefined;
  /** When the media was told to record. Undefined unless it is recording. */
  #startedAt: Date | undefined;

  /** @param port undefined if this gateway has no keys for recordings */
  constructor(call: AcceptedCall, port: RecordingPort | undefined) {
    this.#call = call;
    this.#port = port;
  }

  /** Loads the announcement and makes the key. Never rejects. */
  async prepare(sounds: SoundPort | undefined): Promise<Ready> {
    const { request, accountId } = this.#call;
    const { announce, key } = request.recording || defaultRecording;
    const notice = await loadRequestedSound(announce, accountId, sounds);
    if (notice?.ok === false) return { ok: false, reason: `recording.announce: ${notice.reason}` };
    this.#notice = notice?.sound;
    if (key === undefined) return { ok: true };
    const prepared = await this.#port?.prepare(this.#call, key);
    if (prepared?.ok === true && prepared.encryption !== undefined) {
      this.#encryption = prepared.encryption;
      return { ok: true };
    }
    const reason = prepared?.ok === false ? prepared.reason : 'This gateway has no keys';
    return { ok: false, reason: `recording.key: ${reason}` };
  }

  /** Starts the recording that begins at the answer, unless an announcement comes first. */
  answer(session: Session | undefined, at: Date): void {
    const { from, announce } = this.#call.request.recording || defaultRecording;
    if (from !== 'answer' || announce !== undefined) return;
    this.start(session, 'answer', at);
  }

  announce(session: Session | undefined): void {
    const sound = this.#notice;
    if (sound === undefined) return;
    const playback = { playbackId: recordingNotice, source: 'recording' as const, sound };
    session?.send({ kind: 'play', playback });
  }

  start(session: Session | undefined, from: RecordingBegin, at: Date): void {
    const { callId, accountId, botId, request } = this.#call;
    const { fill, pauseOnKeys } = request.recording || defaultRecording;
    const encryption = this.#encryption === undefined ? {} : { encryption: this.#encryption };
    this.#startedAt = at;
    session?.send({
      ...{ kind: 'record', action: 'start' },
      recording: { callId, accountId, botId, from, fill, pauseOnKeys, ...encryption },
    });
  }

  /** Ends a recording whose answer couldn't be stored. */
  stop(session: Session | undefined): void {
    if (this.#startedAt === undefined) return;
    session?.send({ kind: 'record', action: 'stop', reason: 'call-ended' });
  }

  note({ kind }: RecordingReport): void {
    if (kind === 'stopped' || kind === 'failed') this.#startedAt = undefined;
  }

  /**
   * Notes that the media was lost.
   *
   * @returns the report that ends the recording; undefined if the call isn't being recorded
   */
  lose(at: Date): RecordingReport | undefined {
    const startedAt = this.#startedAt;
    this.#startedAt = undefined;
    if (startedAt === undefined) return undefined;
    const durationMs = Math.max(0, at.getTime() - startedAt.getTime());
    return { kind: 'failed', reason: 'media-failed', durationMs };
  }
}
