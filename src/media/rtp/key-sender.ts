// Sends keys as telephone events (RFC 4733). While a key is pressed, we send a packet every 20 ms
// with the key and its duration so far, instead of our own audio. All packets for one key share a
// timestamp. The last packet is sent three times (section 2.5.1.4), because no other packet tells
// the far end that the key has been released.
//
//   |     event     |E|R| volume    |          duration             |

import type { Keys, KeysSent } from '../../calls/keys/keys.ts';
import type { RemoteMedia } from '../sdp.ts';
import { frameSamples } from './jitter-buffer.ts';
import { rtpHeaderBytes } from './rtp-packet.ts';
import type { RtpSender } from './rtp-sender.ts';

const keys = '0123456789*#ABCD';
const waitCharacter = 'w';
const waitFrames = 25;
const samplesPerMs = 8;
/**
 * The volume is -10 dBm0. If a gateway turns the event back into a tone, every exchange accepts
 * this level (Q.24).
 */
const volume = 10;
const endFlag = 0x80;
const endCopies = 3;
/** We pause for 80 ms between two keys. Per Q.24, no exchange needs more than 70 ms. */
const pauseFrames = 4;
/** Limits the queued key commands per call. */
const maxQueued = 100;
const payloadBytes = 4;
/**
 * Packets are built in these buffers in rotation. We need several because a congested socket sends
 * a packet later, from the same memory.
 */
const bufferCount = 4;

/** `done` counts the finished characters, i.e. keys and waits. */
type QueuedKeys = Keys & { done: number };

type Phase =
  | { readonly kind: 'idle' }
  | { readonly kind: 'wait'; readonly queued: QueuedKeys; framesLeft: number }
  | {
      readonly kind: 'pressed';
      readonly queued: QueuedKeys;
      readonly event: number;
      readonly payloadType: number;
      readonly timestamp: number;
      readonly samples: number;
      /** Frames sent so far. */
      frames: number;
      endsSent: number;
    }
  | { readonly kind: 'pause'; framesLeft: number };

export class KeySender {
  readonly #sender: RtpSender;
  readonly #report: (report: KeysSent) => void;
  readonly #queued: QueuedKeys[] = [];
  /** Made when they are first needed, because most calls send no keys. */
  readonly #packets: Uint8Array[] = [];
  #nextBuffer = 0;
  #phase: Phase = { kind: 'idle' };

  constructor(sender: RtpSender, report: (report: KeysSent) => void) {
    this.#sender = sender;
    this.#report = report;
  }

  press(requested: Keys): void {
    const queued = { ...requested, done: 0 };
    if (this.#queued.length < maxQueued) this.#queued.push(queued);
    else this.#reportSent(queued);
  }

  /**
   * Drops all queued keys. A key that is being pressed still ends normally, because the receiver is
   * waiting for its end packet.
   */
  stop(): void {
    const phase = this.#phase;
    if (phase.kind === 'pressed') this.#finishCharacter(phase.queued);
    if (phase.kind === 'wait') this.#phase = { kind: 'idle' };
    for (const queued of this.#queued.splice(0)) this.#reportSent(queued);
  }

  /**
   * Returns the packet to send instead of audio in this tick. `isRelaying` is true while we're
   * relaying the other leg's audio, because then a key must not shift the audio's timestamps.
   * @returns undefined if audio may be sent
   */
  next(remote: RemoteMedia, isRelaying: boolean): Uint8Array | undefined {
    if (this.#phase.kind === 'idle') this.#begin(remote);
    const phase = this.#phase;
    switch (phase.kind) {
      case 'idle':
        return undefined;
      case 'wait':
        phase.framesLeft -= 1;
        if (phase.framesLeft > 0) return undefined;
        this.#phase = { kind: 'idle' };
        this.#finishCharacter(phase.queued);
        return undefined;
      case 'pressed':
        return this.#press(phase, isRelaying);
      case 'pause':
        phase.framesLeft -= 1;
        if (phase.framesLeft === 0) this.#phase = { kind: 'idle' };
        return isRelaying ? undefined : this.#sender.silence(remote);
    }
  }

  #begin({ keyPayloadType }: RemoteMedia): void {
    const first = this.#queued[0];
    if (first === undefined) return;
    const character = first.digits.charAt(first.done);
    if (character === waitCharacter) {
      this.#phase = { kind: 'wait', queued: first, framesLeft: waitFrames };
      return;
    }
    const event = keys.indexOf(character);
    // After a re-offer, the far end may no longer accept keys.
    if (keyPayloadType === undefined || event === -1 || character === '') {
      this.#queued.shift();
      this.#reportSent(first);
      return;
    }
    this.#phase = {
      kind: 'pressed',
      queued: first,
      event,
      payloadType: keyPayloadType,
      timestamp: this.#sender.nextTimestamp,
      samples: first.durationMs * samplesPerMs,
      frames: 0,
      endsSent: 0,
    };
  }

  #press(phase: Extract<Phase, { kind: 'pressed' }>, isRelaying: boolean): Uint8Array {
    phase.frames += 1;
    const duration = Math.min(phase.frames * frameSamples, phase.samples);
    const isEnd = duration === phase.samples;
    const packet = this.#write(phase.event, isEnd, duration);
    const { payloadType, timestamp } = phase;
    const samples = isRelaying ? 0 : duration;
    this.#sender.relay(packet, { payloadType, marker: phase.frames === 1, timestamp, samples });
    if (isEnd) phase.endsSent += 1;
    if (phase.endsSent === endCopies) {
      // The pause started with the first end packet, so the two copies have already used up two
      // frames of it.
      this.#phase = { kind: 'pause', framesLeft: pauseFrames - (endCopies - 1) };
      this.#finishCharacter(phase.queued);
    }
    return packet;
  }

  #finishCharacter(queued: QueuedKeys): void {
    // `stop` has already dropped these keys.
    if (queued !== this.#queued[0]) return;
    queued.done += 1;
    if (queued.done < queued.digits.length) return;
    this.#queued.shift();
    this.#reportSent(queued);
  }

  #reportSent({ commandId, digits, done }: QueuedKeys): void {
    if (commandId === undefined) return;
    this.#report({ commandId, digits: digits.slice(0, done), complete: done === digits.length });
  }

  #write(event: number, isEnd: boolean, duration: number): Uint8Array {
    const packet = this.#packets[this.#nextBuffer] ?? new Uint8Array(rtpHeaderBytes + payloadBytes);
    this.#packets[this.#nextBuffer] = packet;
    this.#nextBuffer = (this.#nextBuffer + 1) % bufferCount;
    packet[rtpHeaderBytes] = event;
    packet[rtpHeaderBytes + 1] = (isEnd ? endFlag : 0) | volume;
    packet[rtpHeaderBytes + 2] = duration >>> 8;
    packet[rtpHeaderBytes + 3] = duration & 0xff;
    return packet;
  }
}
