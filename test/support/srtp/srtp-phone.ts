// The audio of a scripted phone: RTP and RTCP, encrypted with the reference SRTP or plain. It does
// only what a test says. It counts the rollovers of what it sends and hears on its own, which is
// simple because packets on loopback arrive in order.

import { randomBytes } from 'node:crypto';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { eventually } from '../eventually.ts';
import { freePortPair } from '../free-port.ts';
import { type ReferenceKey, ReferenceSrtp } from './reference-srtp.ts';

export type HeardAudio = {
  readonly payloadType: number;
  readonly marker: boolean;
  readonly sequence: number;
  readonly timestamp: number;
  readonly ssrc: number;
  readonly payload: Buffer;
};

export type PhoneSdp = {
  /** Default: RTP/SAVP if the phone encrypts. */
  readonly protocol?: 'RTP/AVP' | 'RTP/SAVP';
  readonly direction?: 'sendrecv' | 'sendonly' | 'recvonly' | 'inactive';
  /** The lines `a=crypto`. Default: the phone's key, under its suite's tag in our offers. */
  readonly crypto?: readonly string[];
};

const frameBytes = 160;
const keyEventType = 101;

export class SrtpPhone implements AsyncDisposable {
  readonly heard: HeardAudio[] = [];
  readonly reports: Buffer[] = [];
  /** Packets and reports that the phone couldn't authenticate. */
  rejected = 0;
  ssrc = 0x1234;
  /** The next packet's sequence number, and how often it has wrapped. */
  sequence = 100;
  rollover = 0;
  readonly #rtp: Socket;
  readonly #rtcp: Socket;
  #theirs: ReferenceSrtp | undefined;
  #key: ReferenceKey | undefined;
  #ours: ReferenceSrtp | undefined;
  #target = 0;
  #rtcpTarget = 0;
  #timestamp = 4_000;
  #version = 0;
  #reportIndex = 0;
  #reportIndexHeard = -1;
  readonly #lastHeard = new Map<number, { sequence: number; rollover: number }>();

  private constructor(rtp: Socket, rtcp: Socket) {
    this.#rtp = rtp;
    this.#rtcp = rtcp;
    rtp.on('message', (packet) => this.#onPacket(packet));
    rtcp.on('message', (packet) => this.#onReport(packet));
  }

  /** @param key undefined for a phone without encryption */
  static async open(key?: ReferenceKey): Promise<SrtpPhone> {
    const port = await freePortPair();
    const sockets = [port, port + 1].map((at) => {
      const socket = createSocket({ type: 'udp4', recvBufferSize: 4 * 1_024 * 1_024 });
      return socket.bind(at, '127.0.0.1');
    });
    const [rtp, rtcp] = sockets;
    if (rtp === undefined || rtcp === undefined) throw new Error('no sockets');
    await Promise.all(sockets.map((socket) => once(socket, 'listening')));
    const phone = new SrtpPhone(rtp, rtcp);
    phone.useKey(key);
    return phone;
  }

  get port(): number {
    return this.#rtp.address().port;
  }

  get key(): ReferenceKey | undefined {
    return this.#key;
  }

  /** Encrypts with another key from now on. The rollover counter goes on (RFC 3711, 3.3.1). */
  useKey(key: ReferenceKey | undefined): void {
    this.#key = key;
    this.#ours = key && new ReferenceSrtp(key);
  }

  /** Begins a stream with another SSRC, which starts with a rollover counter of 0. */
  restart(ssrc: number, sequence: number): void {
    this.ssrc = ssrc;
    this.sequence = sequence;
    this.rollover = 0;
  }

  /**
   * Takes the gateway's port from its SDP, and its key from the line with our suite. A phone with a
   * key hears nothing that is encrypted with another one, and nothing plain.
   */
  follow(sdp: string): void {
    this.#target = Number(/^m=audio (\d+)/m.exec(sdp)?.[1]);
    this.#rtcpTarget = Number(/^a=rtcp:(\d+)/m.exec(sdp)?.[1] ?? this.#target + 1);
    if (this.#key === undefined) return;
    const { suite } = this.#key;
    const inline = new RegExp(`^a=crypto:\\d+ ${suite} inline:(\\S+)`, 'm').exec(sdp)?.[1];
    if (inline === undefined) throw new Error(`no key for ${suite} in ${sdp}`);
    this.#theirs = new ReferenceSrtp({ suite, inline });
  }

  sdp(options: PhoneSdp = {}): string {
    this.#version += 1;
    const isEncrypted = this.#key !== undefined;
    const { protocol = isEncrypted ? 'RTP/SAVP' : 'RTP/AVP', direction = 'sendrecv' } = options;
    const crypto = options.crypto ?? (this.#key === undefined ? [] : [cryptoLine(this.#key)]);
    return [
      ...['v=0', `o=phone 4711 ${this.#version} IN IP4 127.0.0.1`, 's=-', 'c=IN IP4 127.0.0.1'],
      ...['t=0 0', `m=audio ${this.port} ${protocol} 0 101`, 'a=rtpmap:0 PCMU/8000'],
      ...['a=rtpmap:101 telephone-event/8000', ...crypto, `a=${direction}`, ''],
    ].join('\r\n');
  }

  /** Sends one packet now. */
  send(payload: Uint8Array): void {
    this.#send(0, payload, this.#timestamp, false);
    this.#timestamp += payload.length;
  }

  /** Presses a key: sends the first packet of an event and its three end packets (RFC 4733). */
  press(event: number): void {
    const packets = [
      [event, 0x0a, 0, 0xa0],
      ...Array.from({ length: 3 }, () => [event, 0x8a, 0x03, 0x20]),
    ];
    for (const [index, payload] of packets.entries()) {
      this.#send(keyEventType, Uint8Array.from(payload), this.#timestamp, index === 0);
    }
    this.#timestamp += 800;
  }

  /** Sends a receiver report about the stream that was heard last, and a CNAME of one letter. */
  report({ jitterSamples = 0 } = {}): void {
    const report = Buffer.alloc(44);
    report.set([0x81, 201, 0, 7]);
    report.set([0x81, 202, 0, 2], 32);
    report.set([1, 1, 0x61, 0], 40);
    report.writeUInt32BE(this.ssrc, 4);
    report.writeUInt32BE(this.heard.at(-1)?.ssrc ?? 0, 8);
    report.writeUInt32BE(this.heard.at(-1)?.sequence ?? 0, 16);
    report.writeUInt32BE(jitterSamples, 20);
    report.writeUInt32BE(this.ssrc, 36);
    const sealed = this.#ours?.sealReport(report, this.#reportIndex) ?? report;
    this.#reportIndex += 1;
    this.#rtcp.send(sealed, this.#rtcpTarget, '127.0.0.1');
  }

  /** Sends bytes as they are. */
  sendRaw(packet: Uint8Array): void {
    this.#rtp.send(packet, this.#target, '127.0.0.1');
  }

  /** All audio since the first packet, without keys. */
  get audio(): Buffer {
    return Buffer.concat(
      this.heard.flatMap(({ payloadType, payload }) => (payloadType === 0 ? [payload] : [])),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(
      [this.#rtp, this.#rtcp].map(
        (socket) => new Promise<void>((resolve) => socket.close(() => resolve())),
      ),
    );
  }

  #send(payloadType: number, payload: Uint8Array, timestamp: number, marker: boolean): void {
    const packet = Buffer.alloc(12 + payload.length);
    packet.writeUInt8(0x80, 0);
    packet.writeUInt8((marker ? 0x80 : 0) | payloadType, 1);
    packet.writeUInt16BE(this.sequence, 2);
    packet.writeUInt32BE(timestamp, 4);
    packet.writeUInt32BE(this.ssrc, 8);
    packet.set(payload, 12);
    this.sendRaw(this.#ours?.seal(packet, this.rollover) ?? packet);
    this.sequence = (this.sequence + 1) & 0xffff;
    if (this.sequence === 0) this.rollover += 1;
  }

  #onPacket(packet: Buffer): void {
    const plain = this.#open(packet);
    if (plain === undefined) {
      this.rejected += 1;
      return;
    }
    this.heard.push({
      payloadType: plain.readUInt8(1) & 0x7f,
      marker: plain.readUInt8(1) >= 0x80,
      sequence: plain.readUInt16BE(2),
      timestamp: plain.readUInt32BE(4),
      ssrc: plain.readUInt32BE(8),
      payload: Buffer.from(plain.subarray(12)),
    });
  }

  #open(packet: Buffer): Buffer | undefined {
    if (this.#key === undefined) return packet;
    const [ssrc, sequence] = [packet.readUInt32BE(8), packet.readUInt16BE(2)];
    const last = this.#lastHeard.get(ssrc) ?? { sequence: -1, rollover: 0 };
    const rollover = last.rollover + (sequence < last.sequence ? 1 : 0);
    const plain = this.#theirs?.open(packet, rollover);
    if (plain !== undefined) this.#lastHeard.set(ssrc, { sequence, rollover });
    return plain;
  }

  #onReport(packet: Buffer): void {
    if (this.#key === undefined) {
      this.reports.push(packet);
      return;
    }
    const opened = this.#theirs?.openReport(packet);
    // An index that is used twice would reveal both reports (RFC 3711, section 9.1).
    if (opened === undefined || opened.index <= this.#reportIndexHeard) {
      this.rejected += 1;
      return;
    }
    this.#reportIndexHeard = opened.index;
    this.reports.push(opened.report);
  }
}

export function newKey(suite: ReferenceKey['suite'] = 'AES_CM_128_HMAC_SHA1_80'): ReferenceKey {
  return { suite, inline: randomBytes(30).toString('base64') };
}

/** @param tag Default: the tag of this suite in the gateway's offers */
export function cryptoLine({ suite, inline }: ReferenceKey, tag?: number): string {
  return `a=crypto:${tag ?? (suite.endsWith('_80') ? 1 : 2)} ${suite} inline:${inline}`;
}

/**
 * Sends the audio packet by packet until the listener has it in one piece, byte by byte.
 *
 * @param paceMs time between packets. A far end with a jitter buffer needs 20
 */
export async function speakUntilHeard(
  speaker: SrtpPhone,
  listener: SrtpPhone,
  said: Buffer,
  paceMs = 5,
): Promise<void> {
  await eventually(async () => {
    for (let at = 0; at < said.length; at += frameBytes) {
      speaker.send(said.subarray(at, at + frameBytes));
      await new Promise((resolve) => setTimeout(resolve, paceMs));
    }
    return listener.audio.includes(said);
  }, 'the listener hears the speaker');
}
