// A phone that keeps each RTP packet that it receives, and sends what a test wants. It is the far
// end of calls with a bot.

import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { createRtpHeader, readRtp, writeRtpHeader } from '../../../src/media/rtp/rtp-packet.ts';
import { eventually } from '../eventually.ts';
import { freeUdpPort } from '../free-port.ts';
import { RawCallee, type RawMessage } from '../raw-callee.ts';

export type HeardPacket = {
  readonly payloadType: number;
  readonly marker: boolean;
  readonly sequence: number;
  readonly timestamp: number;
  readonly payload: Buffer;
  readonly atMs: number;
};

export type PhoneCodec = 'PCMU' | 'PCMA';
type Direction = 'sendrecv' | 'sendonly' | 'inactive';

const payloadTypes = { PCMU: 0, PCMA: 8 } as const;
const frameBytes = 160;
const leadFrames = 7;

export type WaitingCallee = {
  readonly target: string;
  called(): Promise<StreamCallee>;
  isCalled(): boolean;
};

export class StreamCallee implements AsyncDisposable {
  packets: HeardPacket[] = [];
  readonly #sip: RawCallee;
  readonly #invite: RawMessage;
  #rtp: Socket;
  readonly #to: { readonly host: string; readonly port: number };
  #version = 0;
  #sequence = 100;
  #timestamp = 4_000;
  #latestMs = 0;

  private constructor(sip: RawCallee, invite: RawMessage, rtp: Socket) {
    this.#sip = sip;
    this.#invite = invite;
    this.#to = audioOf(invite.body);
    this.#rtp = rtp;
    this.#keep(rtp);
  }

  /** Calls `dial` with the URI of a new phone. Resolves when the phone has received its INVITE. */
  static async called<Placed>(
    dial: (target: string) => Promise<Placed>,
  ): Promise<{ readonly callee: StreamCallee; readonly placed: Placed }> {
    const sip = await RawCallee.start({ dropsRepetitions: true });
    const placed = await dial(`sip:callee@127.0.0.1:${sip.port}`);
    const invite = await sip.take('INVITE');
    return { callee: new StreamCallee(sip, invite, await openRtp()), placed };
  }

  /**
   * Opens a phone that nobody has called yet. `called` waits for its INVITE and returns the phone.
   */
  static async waiting(): Promise<WaitingCallee> {
    const sip = await RawCallee.start({ dropsRepetitions: true });
    const rtp = await openRtp();
    return {
      target: `sip:agent@127.0.0.1:${sip.port}`,
      called: async () => new StreamCallee(sip, await sip.take('INVITE'), rtp),
      isCalled: () => sip.has('INVITE'),
    };
  }

  /**
   * The longest delay of a spoken packet, which tells how long this process or the machine stood
   * still.
   */
  get latestMs(): number {
    return this.#latestMs;
  }

  get invite(): RawMessage {
    return this.#invite;
  }

  ring(): void {
    this.#sip.reply(this.#invite, 180, 'Ringing');
  }

  /** Sends 183 with SDP: early media follows. */
  progress(codec: PhoneCodec = 'PCMU'): void {
    const body = this.#sdp('sendrecv', codec);
    this.#sip.reply(this.#invite, 183, 'Session Progress', { body });
  }

  refuse(status: number, reason: string): void {
    this.#sip.reply(this.#invite, status, reason);
  }

  /** Waits until the gateway cancels the INVITE, and answers. */
  async isCancelled(): Promise<void> {
    this.#sip.reply(await this.#sip.take('CANCEL'), 200, 'OK', { contact: false });
    this.#sip.reply(this.#invite, 487, 'Request Terminated');
  }

  /** Waits for a REFER. Answers it if a status is given. */
  async isReferred(status?: number, reason = 'Accepted'): Promise<RawMessage> {
    const refer = await this.#sip.take('REFER');
    if (status !== undefined) this.#sip.reply(refer, status, reason);
    return refer;
  }

  get isBeingReferred(): boolean {
    return this.#sip.has('REFER');
  }

  /** Waits for a key by SIP INFO, and answers it. */
  async isPressed(status = 200, reason = 'OK'): Promise<RawMessage> {
    const info = await this.#sip.take('INFO');
    this.#sip.reply(info, status, reason);
    return info;
  }

  /** Sends a NOTIFY about the REFER. Returns the status of the gateway's answer. */
  async notify(fragment: string, state: string, event = 'refer'): Promise<number> {
    this.#sip.request(this.#invite, 'NOTIFY', {
      body: fragment,
      type: 'message/sipfrag;version=2.0',
      headers: [`Event: ${event}`, `Subscription-State: ${state}`],
    });
    return await this.#sip.takeAnswer('NOTIFY');
  }

  /** Answers without telephone-event, so the phone can't receive keys as RTP events. */
  async answerVoiceOnly(): Promise<void> {
    const body = this.#sdp('sendrecv', 'PCMU').replace(/^a=rtpmap:101.*\r\n/m, '');
    this.#sip.reply(this.#invite, 200, 'OK', { body: body.replace(' 101\r\n', '\r\n') });
    await this.#sip.take('ACK');
  }

  async answer(codec: PhoneCodec = 'PCMU'): Promise<void> {
    this.#sip.reply(this.#invite, 200, 'OK', { body: this.#sdp('sendrecv', codec) });
    await this.#sip.take('ACK');
  }

  async reoffer(direction: Direction, codec: PhoneCodec = 'PCMU'): Promise<void> {
    this.#sip.request(this.#invite, 'INVITE', { body: this.#sdp(direction, codec) });
    await this.#sip.takeResponse(200);
    this.#sip.request(this.#invite, 'ACK');
  }

  /** Moves the audio to another port. The next offer names it. */
  async move(): Promise<void> {
    const old = this.#rtp;
    this.#rtp = await openRtp();
    this.#keep(this.#rtp);
    old.removeAllListeners('message');
    old.close();
  }

  info(digit: string): void {
    this.#sip.request(this.#invite, 'INFO', {
      type: 'application/dtmf-relay',
      body: `Signal=${digit}\r\nDuration=160\r\n`,
    });
  }

  /**
   * Sends the first packets in a burst, then one packet every 20 ms. The burst fills the jitter
   * buffer, which then hides a short standstill of this process.
   */
  async speak(audio: Uint8Array, payloadType = 0): Promise<void> {
    const startMs = performance.now();
    for (let at = 0; at * frameBytes < audio.length; at += 1) {
      const dueMs = startMs + Math.max(0, at - leadFrames) * 20;
      this.#latestMs = Math.max(this.#latestMs, performance.now() - dueMs);
      this.#send(payloadType, audio.subarray(at * frameBytes, (at + 1) * frameBytes));
      const waitMs = startMs + (at + 1 - leadFrames) * 20 - performance.now();
      if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
    }
  }

  /** Sends one packet now. */
  send(audio: Uint8Array): void {
    this.#send(0, audio);
  }

  /** Presses a key: sends the three end packets of an event (RFC 4733). */
  press(event: number): void {
    for (let count = 0; count < 3; count += 1) {
      this.#send(101, Uint8Array.from([event, 0x8a, 0x03, 0x20]), this.#timestamp, count === 0);
    }
    this.#timestamp += 800;
  }

  /** All audio that was heard since the first packet, in µ-law or A-law as it arrived. */
  get heard(): Buffer {
    return Buffer.concat(this.packets.map(({ payload }) => payload));
  }

  async untilHeard(isHeard: (heard: Buffer) => boolean, what: string): Promise<void> {
    await eventually(() => isHeard(this.heard), what);
  }

  hangUp(): void {
    this.#sip.request(this.#invite, 'BYE');
  }

  /**
   * Waits until the gateway hangs up, and answers its BYE. In many tests this takes some seconds by
   * design.
   */
  async isHungUp(): Promise<void> {
    this.#sip.reply(await this.#sip.take('BYE', 30_000), 200, 'OK', { contact: false });
  }

  get isBeingHungUp(): boolean {
    return this.#sip.has('BYE');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#rtp.removeAllListeners();
    this.#rtp.close();
    await this.#sip[Symbol.asyncDispose]();
  }

  #keep(socket: Socket): void {
    const header = createRtpHeader();
    socket.on('message', (packet) => {
      if (!readRtp(packet, header)) return;
      const { payloadType, marker, sequence, timestamp, payloadStart, payloadEnd } = header;
      const payload = Buffer.from(packet.subarray(payloadStart, payloadEnd));
      const atMs = performance.now();
      this.packets.push({ payloadType, marker, sequence, timestamp, payload, atMs });
    });
    socket.on('error', () => undefined);
  }

  #send(payloadType: number, payload: Uint8Array, timestamp?: number, marker = false): void {
    const packet = new Uint8Array(12 + payload.length);
    writeRtpHeader(packet, {
      ...{ payloadType, marker, ssrc: 77 },
      sequence: this.#sequence,
      timestamp: timestamp ?? this.#timestamp,
    });
    packet.set(payload, 12);
    this.#rtp.send(packet, this.#to.port, this.#to.host);
    this.#sequence = (this.#sequence + 1) & 0xffff;
    if (timestamp === undefined) this.#timestamp += payload.length;
  }

  #sdp(direction: Direction, codec: PhoneCodec): string {
    this.#version += 1;
    const type = payloadTypes[codec];
    return [
      'v=0',
      `o=phone 4711 ${this.#version} IN IP4 127.0.0.1`,
      's=-',
      'c=IN IP4 127.0.0.1',
      't=0 0',
      `m=audio ${this.#rtp.address().port} RTP/AVP ${type} 101`,
      `a=rtpmap:${type} ${codec}/8000`,
      'a=rtpmap:101 telephone-event/8000',
      `a=${direction}`,
      '',
    ].join('\r\n');
  }
}

async function openRtp(): Promise<Socket> {
  // Large enough for half a minute of packets. With a smaller buffer we'd lose packets while the
  // test stands still.
  const socket = createSocket({ type: 'udp4', recvBufferSize: 4 * 1_024 * 1_024 });
  socket.bind(await freeUdpPort(), '127.0.0.1');
  await once(socket, 'listening');
  return socket;
}

function audioOf(sdp: string): { readonly host: string; readonly port: number } {
  const host = /^c=IN IP4 (\S+)/m.exec(sdp)?.[1] ?? '';
  const port = Number(/^m=audio (\d+)/m.exec(sdp)?.[1]);
  return { host, port };
}
