import { describe, expect, test } from 'vitest';
import type { StreamSettings } from '../../src/calls/stream/stream.ts';
import { BotSender } from '../../src/streams/bot-sender.ts';
import { streamIdsOf } from '../../src/streams/stream-ids.ts';
import { problemsOfStream, type ToBot } from '../support/streams/stream-messages.ts';

/** A bot that reads, or that does not. */
function createSender() {
  const sent: string[] = [];
  const link = { isFull: false, send: (text: string) => void sent.push(text) };
  const counts = { framesSent: 0, framesDropped: 0 };
  const settings: StreamSettings = {
    ...streamIdsOf({ appId: 'app-1', callId: 'call-1', request: {} }),
    ...{ url: 'ws://127.0.0.1/', secret: 's3cret', customParameters: {} },
    ...{ connect: 'answered', ordinal: 0 },
  };
  const sender = new BotSender(link, settings, [counts]);
  sender.begin({});
  let frames = 0;
  /** Frames that contain their number. */
  const hear = (count: number) => {
    for (let index = 0; index < count; index += 1, frames += 1) {
      sender.hear(new Uint8Array(160).fill(frames % 256));
    }
  };
  const media = () =>
    sent
      .map((text) => JSON.parse(text) as ToBot)
      .flatMap((message) => (message.event === 'media' ? [message.media] : []));
  return { sender, link, sent, counts, hear, media };
}

describe('a bot that reads too slowly', () => {
  test('misses the oldest audio beyond a second, and sees the gap in the timestamps', () => {
    const { link, sent, counts, hear, media } = createSender();
    hear(2);
    link.isFull = true;
    hear(60);
    link.isFull = false;
    hear(1);

    expect(media().map(({ timestamp }) => Number(timestamp) / 20)).toEqual([
      ...[0, 1],
      ...Array.from({ length: 50 }, (_, index) => 12 + index),
      62,
    ]);
    expect(media().map(({ payload }) => Buffer.from(payload, 'base64')[0])).toEqual(
      media().map(({ timestamp }) => Number(timestamp) / 20),
    );
    expect(counts).toEqual({ framesSent: 53, framesDropped: 10 });
    expect(problemsOfStream(sent, { isOver: false })).toEqual([]);
  });

  test('misses only audio', () => {
    const { sender, link, sent, hear } = createSender();
    link.isFull = true;
    hear(100);
    sender.send((writer) => writer.mark('played'));
    sender.send((writer) => writer.stop());

    expect(sent.map((text) => (JSON.parse(text) as ToBot).event)).toEqual([
      ...['connected', 'start', 'mark', 'stop'],
    ]);
    expect(problemsOfStream(sent, { isOver: true })).toEqual([]);
  });
});

test('sends only the ids of a stream from its settings', () => {
  expect(createSender().sent.join(' ')).not.toContain('s3cret');
});
