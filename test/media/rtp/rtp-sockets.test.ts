import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { RtpSockets } from '../../../src/media/rtp/rtp-sockets.ts';
import { eventually } from '../../support/eventually.ts';
import { forEachTest } from '../../support/opened.ts';
import { FarEnd } from '../support/far-end.ts';

const loud = 0x10;
const packet = Uint8Array.from([0x80, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7, 1, 2, 3, 4]);

type Opened = {
  readonly sockets: RtpSockets;
  readonly port: number;
  readonly heardFrom: number[];
  readonly errors: string[];
  unreachable: number;
};

async function open(host: string): Promise<Opened> {
  // Port 0 is not used here: the odd port above the chosen one must be free, too.
  for (let port = 31_300; port < 31_398; port += 2) {
    const heardFrom: number[] = [];
    const errors: string[] = [];
    const seen = { port, heardFrom, errors, unreachable: 0 };
    const result = await RtpSockets.open(host, port, {
      onPacket: (_packet, _address, fromPort) => heardFrom.push(fromPort),
      onRtcp: () => {},
      onUnreachable: () => {
        seen.unreachable += 1;
      },
      onError: (reason) => errors.push(reason),
    });
    if (result.kind === 'open') return Object.assign(seen, { sockets: result.sockets });
  }
  throw new Error('no free port');
}

describe.each(['127.0.0.1', '::1'])('RTP sockets of %s, connected', (host) => {
  let farEnd: FarEnd;

  const opened = forEachTest(() => open(host));
  beforeEach(async () => {
    farEnd = await FarEnd.open(host);
  });

  afterEach(async () => {
    opened.sockets.close();
    await farEnd[Symbol.asyncDispose]();
  });

  test('send to the peer and hear only it, and hear all after a disconnect', async () => {
    await using stranger = await FarEnd.open(host);
    const { sockets, port, heardFrom } = opened;
    sockets.connect(farEnd.port, host);
    sockets.send(packet, farEnd.port, host);
    await eventually(() => farEnd.received.length === 1, 'a packet arrives at the peer');
    stranger.send(port, loud, host);
    farEnd.send(port, loud, host);
    await eventually(() => heardFrom.includes(farEnd.port), 'a packet from the peer is heard');
    expect(heardFrom).toEqual([farEnd.port]);

    sockets.disconnect();
    stranger.send(port, loud, host);
    await eventually(
      () => heardFrom.includes(stranger.port),
      'a packet from the stranger is heard',
    );
    sockets.send(packet, stranger.port, host);
    await eventually(() => stranger.received.length === 1, 'a packet arrives at another address');
  });

  test('connect to another peer without a disconnect in between', async () => {
    await using other = await FarEnd.open(host);
    opened.sockets.connect(farEnd.port, host);
    opened.sockets.connect(other.port, host);
    opened.sockets.send(packet, other.port, host);
    await eventually(() => other.received.length === 1, 'a packet arrives at the new peer');
  });

  test('report a peer with a closed port as unreachable, and stay usable', async () => {
    const { port: peerPort } = farEnd;
    await farEnd[Symbol.asyncDispose]();
    opened.sockets.connect(peerPort, host);
    const send = () => opened.sockets.send(packet, peerPort, host);
    await eventually(() => {
      if (opened.unreachable === 0) send();
      return opened.unreachable > 0;
    }, 'the socket reports the ICMP error');
    opened.sockets.disconnect();
    farEnd = await FarEnd.open(host, peerPort);
    // A pending error is the result of the first send.
    await eventually(() => {
      send();
      return farEnd.received.length > 0;
    }, 'a packet arrives at the port that is open again');

    expect(opened.errors).toEqual([]);
  });
});

describe('RTP sockets', () => {
  test('send as before if they cannot be connected', async () => {
    await using farEnd = await FarEnd.open();
    const { sockets, errors } = await open('127.0.0.1');
    // Loopback has no route to another host.
    sockets.connect(4_000, '192.0.2.1');
    sockets.send(packet, farEnd.port, '127.0.0.1');
    await eventually(() => farEnd.received.length === 1, 'a packet arrives at the far end');

    expect(errors).toEqual([]);
    sockets.disconnect();
    sockets.close();
  });

  test('are never connected on a wildcard address: packets to other addresses would be lost', async () => {
    await using farEnd = await FarEnd.open();
    await using other = await FarEnd.open('127.0.0.2');
    const { sockets, port, heardFrom } = await open('0.0.0.0');
    sockets.connect(farEnd.port, '127.0.0.1');
    other.send(port, loud, '127.0.0.3');
    await eventually(() => heardFrom.includes(other.port), 'a packet to another address is heard');
    sockets.close();
  });
});
