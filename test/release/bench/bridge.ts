// Measures what a bridge costs and how much it delays a conversation: the one-way delay of the
// relay, the CPU time of a bridged call, and the time from the second 200 OK until both persons
// hear each other.

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import type { CallId } from '../../../src/calls/contract/identity.ts';
import type { MediaObserver, PartnerSession } from '../../../src/calls/media.ts';
import { silentLogger } from '../../../src/lib/logger.ts';
import { createMediaPort } from '../../../src/media/media-port.ts';
import { twoWayAudio } from './bridge-connect.ts';
import type { FromBridgePeer, ToBridgePeer } from './bridge-peer.ts';
import { optionsOf } from './options.ts';

const nothing: MediaObserver = {
  observe: (event) => {
    if (event.kind === 'failed') console.error(event.reason);
  },
};

export async function benchBridge(args: readonly string[]): Promise<void> {
  const { bridges, seconds, calls } = optionsOf(args, { bridges: [1, 50], seconds: 5, calls: 100 });
  const ms = seconds * 1_000;
  for (const count of bridges) await relayed(count, ms);
  if (calls > 0) await connected(calls);
}

async function connected(calls: number): Promise<void> {
  const { heardMs, reportedMs } = await twoWayAudio(calls);
  console.log(
    `${calls} people connected to agents, four at a time; load average ${loadavg()[0]?.toFixed(1)}`,
  );
  print('from the 200 OK of the agent to two-way audio, measured at the phones, ms', heardMs);
  print('the same time as the gateway reports it (msToTwoWayAudio), ms', reportedMs);
}

async function relayed(count: number, ms: number): Promise<void> {
  const peer = fork(fileURLToPath(new URL('./bridge-peer.ts', import.meta.url)), {
    execArgv: process.execArgv,
  });
  const { ports } = await ask(peer, 'opened', { kind: 'open', count: count * 2 });
  const port = createMediaPort({
    ...{ host: '127.0.0.1', publicHost: '127.0.0.1', portMin: 30_000, portMax: 39_999 },
    ...{ workers: 1, inactivityTimeoutMs: 600_000, silenceIntervalMs: 200, logger: silentLogger },
  });
  await port.ready();
  const gatewayPorts: number[] = [];
  for (let index = 0; index < count; index += 1) {
    const person = await port.open(`call-${index}` as CallId, nothing);
    const partner: PartnerSession | undefined = await person?.openPartner(nothing, {
      codecs: ['PCMU'],
      encryption: 'rtp',
    });
    if (person === undefined || partner === undefined) throw new Error('no media session');
    person.applyAnswer(sdpOf(ports[index * 2] ?? 0), 'answer');
    partner.applyAnswer(sdpOf(ports[index * 2 + 1] ?? 0), 'answer');
    partner.bridge('answered');
    gatewayPorts.push(portOf(person.offerSdp), portOf(partner.offerSdp));
  }
  // The gateway locks sources and connects sockets 3 s after the first packet.
  await ask(peer, 'talked', { kind: 'talk', ports: gatewayPorts, ms: 4_000 });
  const before = process.cpuUsage();
  const { delaysMs } = await ask(peer, 'talked', { kind: 'talk', ports: gatewayPorts, ms });
  const { user, system } = process.cpuUsage(before);
  console.log(`${count} bridges`);
  print('one-way delay through the relay, ms', delaysMs);
  console.log(
    `  received share of the sent packets: ${((delaysMs.length * 20) / (count * 2 * ms)).toFixed(3)}`,
  );
  const perStepUs = (user + system) / (count * (ms / 20));
  console.log(
    `  CPU time per 20 ms of a bridge: ${perStepUs.toFixed(1)} µs, ${(perStepUs / 200).toFixed(2)} % of a core`,
  );
  peer.kill();
  await port[Symbol.asyncDispose]();
}

async function ask<Kind extends FromBridgePeer['kind']>(
  peer: ChildProcess,
  _kind: Kind,
  message: ToBridgePeer,
): Promise<Extract<FromBridgePeer, { kind: Kind }>> {
  peer.send(message);
  const [answer] = (await once(peer, 'message')) as [Extract<FromBridgePeer, { kind: Kind }>];
  return answer;
}

function sdpOf(port: number): string {
  const lines = ['v=0', 'o=- 1 1 IN IP4 127.0.0.1', 's=-', 'c=IN IP4 127.0.0.1', 't=0 0'];
  return [...lines, `m=audio ${port} RTP/AVP 0`, ''].join('\r\n');
}

function portOf(sdp: string): number {
  return Number(/^m=audio (\d+)/m.exec(sdp)?.[1]);
}

function print(what: string, values: readonly number[]): void {
  const sorted = [...values].sort((one, other) => one - other);
  const at = (share: number) => sorted[Math.floor((sorted.length - 1) * share)]?.toFixed(1);
  console.log(`  ${what}: p50 ${at(0.5)}, p99 ${at(0.99)}, max ${at(1)}`);
}
