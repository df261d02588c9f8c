// Writes UDP packets as a pcap file, and has tshark read it.

import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const rawIpv4 = 228;
const [ipBytes, udpBytes] = [20, 8];

/** What tshark says about one packet: a value for each field, several joined by commas. */
export type Dissected<Field extends string> = Readonly<Record<Field, string>>;

/**
 * @param decodeAs the protocol of these packets, e.g. `rtcp`
 * @param fields names of Wireshark's display filter
 */
export async function dissect<const Field extends string>(
  packets: readonly Uint8Array[],
  decodeAs: string,
  fields: readonly Field[],
): Promise<readonly Dissected<Field>[]> {
  const folder = await mkdtemp(join(tmpdir(), 'offhook-tshark-'));
  try {
    const file = join(folder, 'packets.pcap');
    await writeFile(file, pcapOf(packets));
    const wanted = fields.flatMap((field) => ['-e', field]);
    const { stdout } = await run(
      'tshark',
      ['-r', file, '-d', `udp.port==${port},${decodeAs}`, '-T', 'fields', ...wanted],
      // Reads the settings of no user.
      { env: { ...process.env, HOME: folder, XDG_CONFIG_HOME: folder } },
    );
    return stdout
      .replace(/\n$/, '')
      .split('\n')
      .map((line) => {
        const values = line.split('\t');
        const named = fields.map((field, index) => [field, values[index] ?? ''] as const);
        return Object.fromEntries(named) as Dissected<Field>;
      });
  } finally {
    await rm(folder, { recursive: true });
  }
}

const port = 4_001;

function pcapOf(packets: readonly Uint8Array[]): Buffer {
  const header = Buffer.alloc(24);
  header.writeUInt32LE(0xa1b2c3d4, 0);
  header.writeUInt16LE(2, 4);
  header.writeUInt16LE(4, 6);
  header.writeUInt32LE(65_535, 16);
  header.writeUInt32LE(rawIpv4, 20);
  return Buffer.concat([header, ...packets.flatMap((packet, index) => recordOf(packet, index))]);
}

/** The checksums stay 0, which tells the reader not to check them. */
function recordOf(payload: Uint8Array, index: number): readonly Buffer[] {
  const packet = Buffer.alloc(ipBytes + udpBytes + payload.length);
  packet[0] = 0x45;
  packet.writeUInt16BE(packet.length, 2);
  packet[8] = 64;
  packet[9] = 17;
  packet.set([192, 0, 2, 1, 192, 0, 2, 2], 12);
  packet.writeUInt16BE(port, ipBytes);
  packet.writeUInt16BE(port, ipBytes + 2);
  packet.writeUInt16BE(udpBytes + payload.length, ipBytes + 4);
  packet.set(payload, ipBytes + udpBytes);
  const record = Buffer.alloc(16);
  record.writeUInt32LE(index, 0);
  record.writeUInt32LE(packet.length, 8);
  record.writeUInt32LE(packet.length, 12);
  return [record, packet];
}
