// Tests show who hears lost audio concealed: bots do, the other end of a bridge does not.

import { describe, expect, test } from 'vitest';
import { decodeTable, encodeMulaw } from '../../../src/media/g711.ts';
import { PlayoutPool } from '../../../src/media/playout/playout-pool.ts';
import { PlayoutQueue } from '../../../src/media/playout/playout-queue.ts';
import { quietBot } from '../support/quiet-bot.ts';
import { remote, SessionBench } from '../support/session-bench.ts';

/** 20 ms of a tone of 400 Hz, whose periods fit into a packet. */
const tone = Uint8Array.from({ length: 160 }, (_, index) =>
  encodeMulaw(Math.round(10_000 * Math.sin((2 * Math.PI * 400 * index) / 8_000))),
);

/** A call with a bot. `levels` are those of the frames that the bot hears, in thousands. */
function callWithBot() {
  const bench = new SessionBench();
  const levels: number[] = [];
  const stream = {
    ...quietBot,
    hear: (mulaw: Uint8Array) => {
      const samples = Array.from(mulaw, (byte) => decodeTable.PCMU[byte] ?? 0);
      levels.push(Math.round(Math.hypot(...samples) / Math.sqrt(samples.length) / 1_000));
    },
  };
  const queue = new PlayoutQueue(new PlayoutPool(1_000_000), () => undefined);
  bench.session.applyRemote(remote, 'answer');
  bench.session.streaming.start(stream, queue);
  const send = (packets: number) => {
    for (let packet = 0; packet < packets; packet += 1) {
      bench.receive(tone);
      bench.tick(1);
    }
  };
  const lose = (packets: number) => {
    bench.sequence += packets;
    bench.timestamp += 160 * packets;
    bench.tick(packets);
  };
  return { bench, levels, send, lose };
}

describe('a bot', () => {
  test('hears the tone through a lost packet', () => {
    const { levels, send, lose } = callWithBot();
    send(10);
    lose(1);
    send(10);

    expect(levels).toEqual([0, 0, ...Array.from({ length: 19 }, () => 7)]);
  });

  test('hears ever less, and then silence, while many packets are lost, and then the voice faded in', () => {
    const { levels, send, lose } = callWithBot();
    send(10);
    lose(8);
    send(4);

    expect(levels.slice(10)).toEqual([7, 7, 7, 4, 2, 0, 0, 0, 0, 0, 6, 7]);
  });

  test('hears a new sender from its first sample on, and nothing of the former one', () => {
    const { bench, levels, send } = callWithBot();
    send(10);
    bench.ssrc = 8;
    bench.sequence = 9;
    bench.timestamp = 123_456;
    send(10);

    expect(levels.slice(12)).toEqual([0, 0, 7, 7, 7, 7, 7, 7]);
  });
});

test('the other end of a bridge gets the packets that arrived, byte for byte, and no others', () => {
  const { bench, send, lose } = callWithBot();
  const other = new SessionBench();
  other.session.applyRemote(remote, 'answer');
  bench.session.relayTo(other.session, () => undefined);
  send(10);
  lose(1);
  send(10);

  expect(other.sent.map(({ payload }) => payload)).toEqual(
    Array.from({ length: 20 }, () => [...tone]),
  );
  const [tenth, eleventh] = other.sent.slice(9);
  expect((eleventh?.timestamp ?? 0) - (tenth?.timestamp ?? 0)).toBe(320);
});
