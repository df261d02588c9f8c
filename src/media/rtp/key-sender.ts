// Keys as telephone events (RFC 4733): a packet every 20 ms says "this key, so long by now", under one timestamp; the last one three
// times (section 2.5.1.4), because nothing else says that the key is up. No audio is sent beside them.
//
//   |     event     |E|R| volume    |          duration             |

import type { Keys, KeysSent } from '../../calls/keys/keys.ts';
import type { RemoteMedia } from '../sdp.ts';
import { frameSamples } from './jitter-buffer.ts';
import { rtpHeaderBytes } from './rtp-packet.ts';
import type { RtpSender } from './rtp-sender.ts';

const keys = '0123456789*#ABCD';
const waitSign = 'w';
const waitFrames = 25;
const samplesPerMs = 8;
/** -10 dBm0: within what every exchange takes where a gateway makes a tone of it (Q.24). */
const volume = 10;
const endFlag = 0x80;
const copiesOfEnd = 3;
/** 80 ms from a key's end to the next key: no exchange asks for more than 70 (Q.24). */
const pauseFrames = 4;
/** Keys that may wait in one call. */
const maxWaiting = 100;
const payloadBytes = 4;
/** A socket whose buffer is full sends a packet later, out of the memory it is in. */
const packetsInTurn = 4;

type Waiting = Keys & { done: number };

type Phase =
  | { readonly kind: 'idle' }
  | { readonly kind: 'wait'; readonly of: Waiting; framesLeft: number }
  | {
      readonly kind: 'pressed';
      readonly of: Waiting;
      readonly event: number;
      readonly payloadType: number;
      readonly timestamp: number;
      readonly samples: number;
      /** So far. */
      frames: number;
      endsSent: number;
    }
  | { readonly kind: 'pause'; framesLeft: number };

export class KeySender {
  readonly #sender: RtpSender;
  readonly #report: (report: KeysSent) => void;
  readonly #waiting: Waiting[] = [];
  readonly #packets: readonly Uint8Array[] = Array.from(
    { length: packetsInTurn },
    () => new Uint8Array(rtpHeaderBytes + payloadBytes),
  );
  #turn = 0;
  #phase: Phase = { kind: 'idle' };

  constructor(sender: RtpSender, report: (report: KeysSent) => void) {
    this.#sender = sender;
    this.#report = report;
  }

  get isPressing(): boolean {
    return this.#phase.kind !== 'idle' || this.#waiting.length > 0;
  }

  press(asked: Keys): void {
    const waiting = { ...asked, done: 0 };
    if (this.#waiting.length < maxWaiting) this.#waiting.push(waiting);
    else this.#tell(waiting);
  }

  /** The key that is pressed is let go as it would have been: a receiver waits for its end. */
  stop(): void {
    const phase = this.#phase;
    if (phase.kind === 'pressed') this.#finishSign(phase.of);
    if (phase.kind === 'wait') this.#phase = { kind: 'idle' };
    for (const waiting of this.#waiting.splice(0)) this.#tell(waiting);
  }

  /**
   * The packet of this tick, in place of audio; undefined: audio may be sent. `isBeside` audio of the other leg that goes on, and
   * whose timestamps a key must not push away.
   */
  next(remote: RemoteMedia, isBeside: boolean): Uint8Array | undefined {
    if (this.#phase.kind === 'idle') this.#begin(remote);
    const phase = this.#phase;
    switch (phase.kind) {
      case 'idle':
        return undefined;
      case 'wait':
        phase.framesLeft -= 1;
        if (phase.framesLeft > 0) return undefined;
        this.#phase = { kind: 'idle' };
        this.#finishSign(phase.of);
        return undefined;
      case 'pressed':
        return this.#press(phase, isBeside);
      case 'pause':
        phase.framesLeft -= 1;
        if (phase.framesLeft === 0) this.#phase = { kind: 'idle' };
        return isBeside ? undefined : this.#sender.silence(remote);
    }
  }

  #begin({ keyPayloadType }: RemoteMedia): void {
    const first = this.#waiting[0];
    if (first === undefined) return;
    const sign = first.digits.charAt(first.done);
    if (sign === waitSign) {
      this.#phase = { kind: 'wait', of: first, framesLeft: waitFrames };
      return;
    }
    const event = keys.indexOf(sign);
    // A far end may take them no more after a re-offer.
    if (keyPayloadType === undefined || event === -1 || sign === '') {
      this.#waiting.shift();
      this.#tell(first);
      return;
    }
    this.#phase = {
      kind: 'pressed',
      of: first,
      event,
      payloadType: keyPayloadType,
      timestamp: this.#sender.nextTimestamp,
      samples: first.durationMs * samplesPerMs,
      frames: 0,
      endsSent: 0,
    };
  }

  #press(phase: Extract<Phase, { kind: 'pressed' }>, isBeside: boolean): Uint8Array {
    phase.frames += 1;
    const duration = Math.min(phase.frames * frameSamples, phase.samples);
    const isEnd = duration === phase.samples;
    const packet = this.#write(phase.event, isEnd, duration);
    const { payloadType, timestamp } = phase;
    const samples = isBeside ? 0 : duration;
    this.#sender.relay(packet, { payloadType, marker: phase.frames === 1, timestamp, samples });
    if (isEnd) phase.endsSent += 1;
    if (phase.endsSent === copiesOfEnd) {
      // The two copies of the end were sent in it.
      this.#phase = { kind: 'pause', framesLeft: pauseFrames - (copiesOfEnd - 1) };
      this.#finishSign(phase.of);
    }
    return packet;
  }

  #finishSign(of: Waiting): void {
    // It was stopped meanwhile.
    if (of !== this.#waiting[0]) return;
    of.done += 1;
    if (of.done < of.digits.length) return;
    this.#waiting.shift();
    this.#tell(of);
  }

  #tell({ commandId, digits, done }: Waiting): void {
    if (commandId === undefined) return;
    this.#report({ commandId, digits: digits.slice(0, done), complete: done === digits.length });
  }

  #write(event: number, isEnd: boolean, duration: number): Uint8Array {
    const packet = this.#packets[this.#turn] as Uint8Array;
    this.#turn = (this.#turn + 1) % packetsInTurn;
    packet[rtpHeaderBytes] = event;
    packet[rtpHeaderBytes + 1] = (isEnd ? endFlag : 0) | volume;
    packet[rtpHeaderBytes + 2] = duration >>> 8;
    packet[rtpHeaderBytes + 3] = duration & 0xff;
    return packet;
  }
}
