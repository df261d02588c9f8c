// A session's recording. Passes the call's audio and keys to the recorder, while there is one. If
// the recorder throws, only the recording fails.

import { assertNever } from '../calls/call-types.ts';
import type {
  RecordingCommand,
  RecordingReport,
  RecordingStart,
} from '../calls/recording/recording.ts';
import type { Codec } from './g711.ts';
import type { CallRecorder, CreateRecorder } from './recorder-port.ts';
import { frameSamples } from './rtp/jitter-buffer.ts';
import { readTimestamp, rtpHeaderBytes } from './rtp/rtp-packet.ts';

export class SessionRecording {
  readonly #create: CreateRecorder | undefined;
  readonly #report: (report: RecordingReport) => void;
  readonly #onError: (error: unknown) => void;
  /** Set from the command until the first tick after the answer. */
  #requested: RecordingStart | undefined;
  #recorder: CallRecorder | undefined;

  /** Without `create`, a recording fails at once. */
  constructor(
    create: CreateRecorder | undefined,
    report: (report: RecordingReport) => void,
    onError: (error: unknown) => void,
  ) {
    this.#create = create;
    this.#report = report;
    this.#onError = onError;
  }

  /** True while the recorder needs frames. */
  get isActive(): boolean {
    return this.#recorder !== undefined;
  }

  execute(command: RecordingCommand): void {
    switch (command.action) {
      case 'start':
        if (this.#recorder === undefined) this.#requested = command.recording;
        return;
      case 'pause':
        this.#with((recorder) => recorder.pause());
        return;
      case 'resume':
        this.#with((recorder) => recorder.resume());
        return;
      case 'stop':
        this.#stop(command.reason);
        return;
      default:
        assertNever(command);
    }
  }

  /** Begins a tick of an answered session. `timestamp` is that of our clock before this tick. */
  begin(timestamp: number): void {
    const requested = this.#requested;
    if (requested === undefined) return;
    this.#requested = undefined;
    if (this.#create === undefined) {
      this.#report({ kind: 'failed', reason: 'media-failed', durationMs: 0 });
      return;
    }
    this.#recorder = this.#create(requested, (timestamp + frameSamples) >>> 0, this.#report);
    this.#releaseWhenOver();
  }

  hear(mulaw: Uint8Array): void {
    if (this.#recorder === undefined) return;
    try {
      this.#recorder.hear(mulaw);
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Passes on a packet of our audio, or of the audio that we relay. */
  say(packet: Uint8Array, codec: Codec): void {
    if (this.#recorder === undefined) return;
    try {
      this.#recorder.say(packet, rtpHeaderBytes, codec, readTimestamp(packet));
    } catch (error) {
      this.#fail(error);
    }
  }

  tick(): void {
    if (this.#recorder === undefined) return;
    try {
      this.#recorder.tick();
    } catch (error) {
      this.#fail(error);
    }
    this.#releaseWhenOver();
  }

  beginKey(agoMs: number): void {
    this.#with((recorder) => recorder.beginKey(agoMs));
  }

  endKey(): void {
    this.#with((recorder) => recorder.endKey());
  }

  /** Ends the recording together with its session. */
  end(): void {
    this.#stop('call-ended');
  }

  /** Ends the recording, because its session has failed. */
  fail(): void {
    this.#with((recorder) => recorder.fail());
  }

  #stop(reason: 'command' | 'call-ended'): void {
    if (this.#requested !== undefined) {
      this.#requested = undefined;
      this.#report({ kind: 'stopped', reason, durationMs: 0, pausedMs: 0 });
    }
    this.#with((recorder) => recorder.stop(reason));
  }

  #with(run: (recorder: CallRecorder) => void): void {
    if (this.#recorder === undefined) return;
    try {
      run(this.#recorder);
    } catch (error) {
      this.#fail(error);
    }
    this.#releaseWhenOver();
  }

  #releaseWhenOver(): void {
    if (this.#recorder?.isOver === true) this.#recorder = undefined;
  }

  #fail(error: unknown): void {
    const recorder = this.#recorder;
    this.#recorder = undefined;
    this.#onError(error);
    recorder?.fail();
  }
}
