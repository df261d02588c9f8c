import { expect, test } from 'vitest';
import { freeUdpPort } from './free-port.ts';

test('nobody is given a port that another was given and does not listen on yet', async () => {
  const ports: number[] = [];
  for (let count = 0; count < 300; count += 1) ports.push(await freeUdpPort());
  expect(new Set(ports).size).toBe(ports.length);
});
