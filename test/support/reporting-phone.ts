// A phone that sends 20 ms packets, and reports by RTCP what it hears (RFC 3550). It shares no code
// with the gateway, and its clock is an hour ahead.

import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';

const packetMs = 20;
const samples = 160;
const reportEveryMs = 1_000;
const aheadMs = 3_600_000;
const ntpOffsetS = 2_208_988_800;

type Ports = { readonly rtp: number; readonly rtcp: number };

export class ReportingPhone implements AsyncDisposable {
  readonly #rtp: Socket;
  readonly #rtcp: Socket;
  readonly ssrc = 0x1234_5678;
  #sequence = 65_500;
  #timestamp = 0xffff_0000;
  #sent = 0;
  /** What it has heard: the gateway's SSRC, and each sequence number with its wraps. */
  #heard: { readonly ssrc: number; readonly sequences: Set<number>; highest: number } | undefined;
  #jitter = 0;
  #transitBefore: number | undefined;
  #lastReport: { readonly middle: number; readonly atMs: number } | undefined;
  readonly received: Buffer[] = [];
  /** The reports of the gateway, as they arrived. */
  readonly reports: Buffer[] = [];
  /** What the phone's last report says about the gateway's packets. */
  reported = { lost: 0, expected: 0, jitterMs: 0 };

  private constructor(rtp: Socket, rtcp: Socket) {
    this.#rtp = rtp;
    this.#rtcp = rtcp;
    rtp.on('message', (packet) => this.#hear(packet));
    rtcp.on('message', (packet) => this.#noteReport(packet));
  }

  static async open(): Promise<ReportingPhone> {
    const [rtp, rtcp] = await Promise.all([openSocket(), openSocket()]);
    return new ReportingPhone(rtp, rtcp);
  }

  get ports(): Ports {
    return { rtp: this.#rtp.address().port, rtcp: this.#rtcp.address().port };
  }

  /** Talks for `packets` packets and reports once a second. */
  async talk(to: Ports, packets: number): Promise<void> {
    const startMs = performance.now();
    let reports = 0;
    for (let index = 0; index < packets; ) {
      const elapsedMs = performance.now() - startMs;
      for (; index < packets && index * packetMs <= elapsedMs; index += 1) this.#say(to.rtp);
      if (elapsedMs >= (reports + 1) * reportEveryMs) {
        reports += 1;
        this.report(to.rtcp);
      }
      await pause(2);
    }
  }

  #say(toPort: number): void {
    const packet = Buffer.alloc(12 + samples, 0x55);
    packet[0] = 0x80;
    packet[1] = 0;
    packet.writeUInt16BE(this.#sequence, 2);
    packet.writeUInt32BE(this.#timestamp, 4);
    packet.writeUInt32BE(this.ssrc, 8);
    this.#sequence = (this.#sequence + 1) & 0xffff;
    this.#timestamp = (this.#timestamp + samples) >>> 0;
    this.#sent += 1;
    this.#rtp.send(packet, toPort, '127.0.0.1');
  }

  #hear(packet: Buffer): void {
    this.received.push(packet);
    const [sequence, ssrc] = [packet.readUInt16BE(2), packet.readUInt32BE(8)];
    this.#heard ??= { ssrc, sequences: new Set(), highest: sequence };
    const ahead = ((sequence - this.#heard.highest) << 16) >> 16;
    const extended = this.#heard.highest + ahead;
    this.#heard.sequences.add(extended);
    this.#heard.highest = Math.max(this.#heard.highest, extended);
    const transit = performance.now() * 8 - packet.readUInt32BE(4);
    if (this.#transitBefore !== undefined) {
      // The timestamp may wrap in between.
      const difference = Math.abs((transit - this.#transitBefore) % 2 ** 32);
      this.#jitter += (Math.min(difference, 2 ** 32 - difference) - this.#jitter) / 16;
    }
    this.#transitBefore = transit;
  }

  #noteReport(packet: Buffer): void {
    this.reports.push(packet);
    const isSender = packet[1] === 200;
    if (isSender) this.#lastReport = { middle: packet.readUInt32BE(10), atMs: performance.now() };
  }

  /** Sends a sender's report and the phone's name. */
  report(toPort: number): void {
    const now = Date.now() + aheadMs;
    const heard = this.#heard;
    const report = Buffer.alloc(28 + (heard === undefined ? 0 : 24));
    report.writeUInt32BE(((0x80 + (heard === undefined ? 0 : 1)) << 24) >>> 0, 0);
    report[1] = 200;
    report.writeUInt16BE(report.length / 4 - 1, 2);
    report.writeUInt32BE(this.ssrc, 4);
    report.writeUInt32BE(Math.floor(now / 1_000) + ntpOffsetS, 8);
    report.writeUInt32BE(Math.floor(((now % 1_000) / 1_000) * 2 ** 32), 12);
    report.writeUInt32BE(this.#timestamp, 16);
    report.writeUInt32BE(this.#sent, 20);
    report.writeUInt32BE(this.#sent * samples, 24);
    if (heard !== undefined) this.#describe(report, heard);
    const name = Buffer.from([0x81, 202, 0, 3, 0, 0, 0, 0, 1, 5, 0x70, 0x68, 0x6f, 0x6e, 0x65, 0]);
    name.writeUInt32BE(this.ssrc, 4);
    this.#rtcp.send(Buffer.concat([report, name]), toPort, '127.0.0.1');
  }

  #describe(
    report: Buffer,
    heard: { ssrc: number; sequences: Set<number>; highest: number },
  ): void {
    const expected = heard.highest - Math.min(...heard.sequences) + 1;
    const lost = expected - heard.sequences.size;
    this.reported = { lost, expected, jitterMs: Math.floor(this.#jitter) / 8 };
    report.writeUInt32BE(heard.ssrc, 28);
    report.writeUInt32BE(lost, 32);
    report.writeUInt32BE(heard.highest, 36);
    report.writeUInt32BE(Math.floor(this.#jitter), 40);
    if (this.#lastReport === undefined) return;
    const { middle, atMs } = this.#lastReport;
    report.writeUInt32BE(middle, 44);
    report.writeUInt32BE(Math.round(((performance.now() - atMs) / 1_000) * 65_536), 48);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = Promise.all([once(this.#rtp, 'close'), once(this.#rtcp, 'close')]);
    this.#rtp.close();
    this.#rtcp.close();
    await closed;
  }
}

async function openSocket(): Promise<Socket> {
  const socket = createSocket({ type: 'udp4', recvBufferSize: 1_024 * 1_024 });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return socket;
}
