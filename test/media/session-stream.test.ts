// A bot that comes in mid-call, and one that replaces it: what it learns of the call, and what it
// may say.

import { describe, expect, test } from 'vitest';
import type { AmdEvent } from '../../src/calls/detection/amd-event.ts';
import { PlayoutPool } from '../../src/media/playout/playout-pool.ts';
import { PlayoutQueue } from '../../src/media/playout/playout-queue.ts';
import { SoundPlayer } from '../../src/media/playout/sound-player.ts';
import { SessionStream } from '../../src/media/session-stream.ts';
import type { BotStream } from '../../src/media/stream-port.ts';

function recordedBot() {
  const log: string[] = [];
  const queue = new PlayoutQueue(new PlayoutPool(1_000_000), () => undefined);
  const stream: BotStream = {
    prepare: () => undefined,
    answer: () => undefined,
    hear: (frame) => void log.push(`hears ${frame[0]}`),
    sendDigit: (digit) => void log.push(`key ${digit}`),
    sendAmd: ({ event }) => void log.push(event),
    sendTransferFailed: () => undefined,
    returnMark: () => undefined,
    tick: () => undefined,
    stop: (reason) => void log.push(`stop ${reason}`),
  };
  return { log, queue, stream };
}

const amd = (event: AmdEvent['event']): AmdEvent => ({ event, reason: 'x', elapsedMs: 20 });
const silence = new Uint8Array(160).fill(0xff);
const voice = new Uint8Array(160).fill(1);

describe('a bot that comes in mid-call', () => {
  test('receives the events of detection so far, but no keys pressed before it came', () => {
    const session = new SessionStream(new SoundPlayer(() => undefined));
    session.sendAmd(amd('amd_human_detected'));
    session.sendDigit('4');
    session.sendAmd(amd('amd_stopped'));
    const { log, stream, queue } = recordedBot();
    session.start(stream, queue);
    session.sendDigit('5');

    expect(log).toEqual(['amd_human_detected', 'amd_stopped', 'key 5']);
  });

  test('has the call alone: the previous bot hears and says nothing more', () => {
    const session = new SessionStream(new SoundPlayer(() => undefined));
    const [first, second] = [recordedBot(), recordedBot()];
    session.start(first.stream, first.queue);
    session.hear(voice, silence);
    first.queue.write(voice);
    session.stop('replaced');
    session.start(second.stream, second.queue);
    session.hear(voice, silence);

    expect(first.log).toEqual(['hears 1', 'stop replaced']);
    expect(first.queue.queuedBytes).toBe(0);
    expect(second.log).toEqual(['hears 1']);
  });

  test('is muted and gated like the previous bot', () => {
    const session = new SessionStream(new SoundPlayer(() => undefined));
    session.mute(true);
    session.gate(true);
    const { log, stream, queue } = recordedBot();
    session.start(stream, queue);
    queue.write(voice);
    session.hear(voice, silence);
    session.sendDigit('4');

    expect(queue.queuedBytes).toBe(0);
    expect(log).toEqual(['hears 255']);
  });
});
