// Records the RTP that the gateway sends with dumpcap, which has the kernel's time for each packet.
// So the figures don't depend on how fast a receiver reads its sockets.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRtpHeader, readRtp } from '../../../src/media/rtp/rtp-packet.ts';

const globalHeaderBytes = 24;
const recordHeaderBytes = 16;
/** Ethernet, IPv4 without options and UDP. */
const headersBytes = 14 + 20 + 8;
const rtpUnitsPerMs = 8;
const frameUnits = 160;

export type SentTimes = {
  /** Time between the packets of two consecutive ticks. */
  readonly intervalsMs: number[];
  /** How late each packet left, on the clock of its own stream. Its earliest packet has 0. */
  readonly lateMs: number[];
};

export class SentPackets {
  readonly #folder = mkdtempSync(join(tmpdir(), 'offhook-sent-'));
  readonly #child: ChildProcess;

  readonly #ports: ReadonlySet<number>;

  private constructor(ports: readonly number[]) {
    this.#ports = new Set(ports);
    const filter = `udp and src portrange ${Math.min(...ports)}-${Math.max(...ports)}`;
    const options = ['-i', 'lo', '-P', '-q', '-s', '80', '-B', '64', '-w', this.#file];
    this.#child = spawn('dumpcap', [...options, '-f', filter], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  }

  get #file(): string {
    return join(this.#folder, 'sent.pcap');
  }

  /**
   * @param ports from which the gateway sends
   * @returns undefined if there is no dumpcap, or it may not record
   */
  static async record(ports: readonly number[]): Promise<SentPackets | undefined> {
    const packets = new SentPackets(ports);
    const isRecording = await new Promise<boolean>((resolve) => {
      packets.#child.once('error', () => resolve(false));
      packets.#child.once('exit', () => resolve(false));
      packets.#child.stderr?.on('data', (text: Buffer) => {
        if (text.includes('File:')) resolve(true);
      });
    });
    if (isRecording) return packets;
    rmSync(packets.#folder, { recursive: true });
    return undefined;
  }

  async stop(): Promise<SentTimes> {
    this.#child.kill('SIGINT');
    await once(this.#child, 'exit');
    const times = read(readFileSync(this.#file), this.#ports);
    rmSync(this.#folder, { recursive: true });
    return times;
  }
}

type Packet = { readonly atMs: number; readonly timestamp: number };

function read(file: Buffer, ports: ReadonlySet<number>): SentTimes {
  const byPort = new Map<number, Packet[]>();
  for (let at = globalHeaderBytes; at + recordHeaderBytes <= file.length; ) {
    const bytes = file.readUInt32LE(at + 8);
    const packet = file.subarray(at + recordHeaderBytes, at + recordHeaderBytes + bytes);
    const atMs = file.readUInt32LE(at) * 1_000 + file.readUInt32LE(at + 4) / 1_000;
    at += recordHeaderBytes + bytes;
    const header = createRtpHeader();
    if (packet.length <= headersBytes || !readRtp(packet.subarray(headersBytes), header)) continue;
    const port = packet.readUInt16BE(headersBytes - 8);
    if (!ports.has(port)) continue;
    const packets = byPort.get(port) ?? [];
    byPort.set(port, packets);
    packets.push({ atMs, timestamp: header.timestamp });
  }
  const times: SentTimes = { intervalsMs: [], lateMs: [] };
  for (const packets of byPort.values()) measure(packets, times);
  return times;
}

function measure(packets: readonly Packet[], { intervalsMs, lateMs }: SentTimes): void {
  const firstUnits = packets[0]?.timestamp ?? 0;
  const offsets = packets.map(
    ({ atMs, timestamp }) => atMs - ((timestamp - firstUnits) >>> 0) / rtpUnitsPerMs,
  );
  const earliest = offsets.reduce((least, offset) => Math.min(least, offset), Infinity);
  for (const [index, packet] of packets.entries()) {
    lateMs.push((offsets[index] ?? 0) - earliest);
    const next = packets[index + 1];
    if (next !== undefined && (next.timestamp - packet.timestamp) >>> 0 === frameUnits)
      intervalsMs.push(next.atMs - packet.atMs);
  }
}
