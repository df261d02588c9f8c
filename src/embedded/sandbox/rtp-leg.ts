// The callee's RTP, on one UDP socket. We send 20 ms packets to the address in the offer, and count
// the packets that arrive. While a key is pressed, telephone events replace the audio.

import { randomBytes, randomInt } from 'node:crypto';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import type { Codec } from '../../media/g711.ts';
import {
  createRtpHeader,
  readRtp,
  rtpHeaderBytes,
  writeRtpHeader,
} from '../../media/rtp/rtp-packet.ts';
import type { AudioOffer } from './sdp-answer.ts';
import { frameSamples } from './sounds.ts';

/** Receives a packet's payload, which is only valid until this function returns. */
type OnAudio = (payload: Uint8Array, codec: Codec) => void;

export class RtpLeg {
  packetsSent = 0;
  packetsReceived = 0;
  readonly #socket: Socket;
  readonly #packet = new Uint8Array(rtpHeaderBytes + frameSamples);
  readonly #ssrc = randomBytes(4).readUInt32BE();
  #sequence = randomInt(0x1_0000);
  #timestamp = randomBytes(4).readUInt32BE();
  #remote: AudioOffer;
  #talkSpurt = true;
  #pressing: { readonly key: KeyPress; readonly timestamp: number } | undefined;
  #closed = false;

  private constructor(socket: Socket, remote: AudioOffer, onAudio: OnAudio) {
    this.#socket = socket;
    this.#remote = remote;
    const header = createRtpHeader();
    socket.on('message', (packet) => {
      if (!readRtp(packet, header)) return;
      this.packetsReceived += 1;
      const { codec, payloadType } = this.#remote;
      if (header.payloadType !== payloadType) return;
      onAudio(packet.subarray(header.payloadStart, header.payloadEnd), codec);
    });
    // ICMP port unreachable, which means that the caller's socket is gone and the BYE is on its
    // way.
    socket.on('error', () => undefined);
  }

  /** @throws Error if the socket can't be opened */
  static async open(
    host: string,
    remote: AudioOffer,
    onAudio: OnAudio = () => undefined,
  ): Promise<RtpLeg> {
    const family = host.includes(':') ? 6 : 4;
    const socket = createSocket({
      type: family === 6 ? 'udp6' : 'udp4',
      // Never resolve host names from SDP. SDP should only contain addresses, and we'd have to look
      // the name up for every packet.
      lookup: (address, _options, callback) => callback(null, address, family),
    });
    // Register the listener before the bind. If the socket doesn't need a look-up, it emits
    // `listening` during `bind`.
    const listening = once(socket, 'listening');
    socket.bind(0, host);
    await listening;
    return new RtpLeg(socket, remote, onAudio);
  }

  get port(): number {
    return this.#socket.address().port;
  }

  get remote(): AudioOffer {
    return this.#remote;
  }

  /**
   * Applies the offer from a re-INVITE or UPDATE, i.e. a new address, a new codec, hold or resume.
   */
  redirect(remote: AudioOffer): void {
    this.#remote = remote;
  }

  /**
   * Starts sending a DTMF digit with the next frame. Has no effect if the caller doesn't accept
   * telephone events.
   */
  press(key: string): void {
    if (this.#remote.telephoneEventPayloadType === undefined) return;
    const timestamp = (this.#timestamp + frameSamples) >>> 0;
    this.#pressing = { key: new KeyPress(key), timestamp };
  }

  /**
   * Sends the next 20 ms. While the caller has put the call on hold, only the timestamp advances.
   */
  send(payload: Uint8Array): void {
    if (this.#closed) return;
    this.#timestamp = (this.#timestamp + frameSamples) >>> 0;
    const { direction } = this.#remote;
    if (direction === 'sendonly' || direction === 'inactive') {
      this.#talkSpurt = true;
      return;
    }
    if (this.#pressing === undefined) this.#sendAudio(payload);
    else this.#sendKey(this.#pressing);
  }

  #sendAudio(payload: Uint8Array): void {
    const { payloadType } = this.#remote;
    const marker = this.#talkSpurt;
    this.#talkSpurt = false;
    this.#sendPacket(payload, { payloadType, marker, timestamp: this.#timestamp });
  }

  #sendKey({ key, timestamp }: { readonly key: KeyPress; readonly timestamp: number }): void {
    const { telephoneEventPayloadType: payloadType = 0 } = this.#remote;
    const marker = key.isFirst;
    this.#sendPacket(key.next(), { payloadType, marker, timestamp });
    if (!key.isOver) return;
    this.#pressing = undefined;
    this.#talkSpurt = true;
  }

  #sendPacket(
    payload: Uint8Array,
    fields: {
      readonly payloadType: number;
      readonly marker: boolean;
      readonly timestamp: number;
    },
  ): void {
    this.#sequence = (this.#sequence + 1) & 0xffff;
    writeRtpHeader(this.#packet, { ...fields, sequence: this.#sequence, ssrc: this.#ssrc });
    this.#packet.set(payload, rtpHeaderBytes);
    this.packetsSent += 1;
    const { port, host } = this.#remote;
    // Send a copy, because by the time the socket sends the packet, we may have written the next
    // frame.
    const packet = Buffer.from(this.#packet.subarray(0, rtpHeaderBytes + payload.length));
    this.#socket.send(packet, port, host, () => undefined);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#socket.close();
  }
}

const keys = '0123456789*#ABCD';
/** A key is pressed for 100 ms. */
const pressedFrames = 5;
const endPackets = 3;
const volumeDbm0 = 10;
const endBit = 0x80;

/**
 * A key press as telephone events (RFC 4733), with one packet every 20 ms. All packets have the
 * first packet's timestamp, and the last packet is sent three times (section 2.5.1.4).
 */
export class KeyPress {
  readonly #event: number;
  #packets = 0;

  constructor(key: string) {
    this.#event = keys.indexOf(key);
  }

  get isOver(): boolean {
    return this.#packets === pressedFrames + endPackets - 1;
  }

  get isFirst(): boolean {
    return this.#packets === 0;
  }

  /** Returns the payload of the next packet. */
  next(): Uint8Array {
    this.#packets += 1;
    const durationSamples = Math.min(this.#packets, pressedFrames) * frameSamples;
    const isEnd = this.#packets >= pressedFrames;
    return Uint8Array.of(
      this.#event,
      (isEnd ? endBit : 0) | volumeDbm0,
      durationSamples >> 8,
      durationSamples & 0xff,
    );
  }
}
