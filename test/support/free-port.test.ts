import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { describe, expect, onTestFinished, test } from 'vitest';
import { freePortRange, freeUdpPort, type PortRange } from './free-port.ts';

test('gives each port once, even if its caller does not listen on it yet', async () => {
  const ports: number[] = [];
  for (let count = 0; count < 300; count += 1) ports.push(await freeUdpPort());
  expect(new Set(ports).size).toBe(ports.length);
});

const portsOf = ({ portMin, portMax }: PortRange): readonly number[] =>
  Array.from({ length: portMax - portMin + 1 }, (_, index) => portMin + index);

describe('a range of ports', () => {
  test('shares no port with another range or with single ports', async () => {
    const ports: number[] = [];
    const ranges: PortRange[] = [];
    onTestFinished(async () => {
      for (const range of ranges) await range[Symbol.asyncDispose]();
    });
    for (const size of [1, 100, 101, 300, 50, 300]) {
      const range = await freePortRange(size);
      ranges.push(range);
      expect(portsOf(range)).toHaveLength(size);
      ports.push(...portsOf(range));
    }
    for (let count = 0; count < 100; count += 1) ports.push(await freeUdpPort());

    expect(new Set(ports).size).toBe(ports.length);
    // The range of the system's ephemeral ports.
    expect(Math.max(...ports)).toBeLessThan(32_768);
  });

  test('can be bound completely', async () => {
    await using range = await freePortRange(150);
    const sockets = portsOf(range).map((port) => createSocket('udp4').bind(port, '127.0.0.1'));
    try {
      await Promise.all(sockets.map((socket) => once(socket, 'listening')));
    } finally {
      for (const socket of sockets) socket.close();
    }
  });

  test('is refused with a reason if there are too few ports', async () => {
    await expect(freePortRange(10_001)).rejects.toThrow(
      'no 10001 free UDP ports in a row from 21000 to 30999',
    );
  });
});
