// How much a bot may send, in messages and in bytes.

import { beforeEach, expect, test } from 'vitest';
import { PlayoutPool } from '../../src/media/playout/playout-pool.ts';
import { PlayoutQueue } from '../../src/media/playout/playout-queue.ts';
import { BotInbox } from '../../src/streams/bot-inbox.ts';

const streamSid = `MZ${'0'.repeat(32)}`;
let queue: PlayoutQueue;
let inbox: BotInbox;
let warnings: string[];

beforeEach(() => {
  warnings = [];
  queue = new PlayoutQueue(new PlayoutPool(16_000_000), () => undefined);
  inbox = new BotInbox(streamSid, queue, {
    onIgnored: () => undefined,
    warn: (warning) => warnings.push(warning),
    note: undefined,
  });
});

function receive(message: object): void {
  inbox.receive(Buffer.from(JSON.stringify({ ...message, streamSid })));
}

function say(ms: number): void {
  receive({ event: 'media', media: { payload: Buffer.alloc(8 * ms).toString('base64') } });
}

function pass(seconds: number): void {
  for (let tick = 0; tick < 50 * seconds; tick += 1) inbox.tick();
}

test('a bot may fill the queue at once, in pieces of 300 ms with a mark each', () => {
  for (let piece = 0; piece < 2_000; piece += 1) {
    say(300);
    receive({ event: 'mark', mark: { name: `responsechunk-${piece}` } });
  }

  expect(queue.queuedBytes).toBe(600 * 8_000);
  expect([inbox.ignored, warnings]).toEqual([0, []]);
});

test('a bot may send 500 messages of 20 ms a second for as long as it wants', () => {
  queue.mute(true);
  for (let second = 0; second < 120; second += 1) {
    for (let message = 0; message < 500; message += 1) say(20);
    pass(1);
  }

  expect([inbox.ignored, warnings]).toEqual([0, []]);
});

test('messages beyond the bytes that a bot may send are ignored, until time has passed', () => {
  const long = Buffer.alloc(4_500_000).toString('base64');
  for (let message = 0; message < 3; message += 1) {
    receive({ event: 'media', media: { payload: long } });
  }
  expect([inbox.ignored, warnings]).toEqual([2, ['more than 160 kB a second']]);
  expect(inbox.bytesReceived).toBe(4_500_000);

  pass(60);
  receive({ event: 'media', media: { payload: long } });
  expect([inbox.ignored, inbox.bytesReceived]).toEqual([2, 9_000_000]);
});
