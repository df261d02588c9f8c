// A pause, by a command or for the keys that the far end presses: what lies inside it never leaves
// the media worker.

import { describe, expect, test } from 'vitest';
import { RecordedSession } from '../support/recorded-session.ts';

const tone = new Uint8Array(160).fill(0x10);

/** A call in which both sides make noise all the time. */
function noisyCall(changes: Parameters<RecordedSession['record']>[0]) {
  const call = new RecordedSession();
  call.answer();
  call.record(changes);
  const talk = (ticks: number): void => {
    for (let tick = 0; tick < ticks; tick += 1) {
      call.bot.write(tone);
      call.send(tone);
      call.tick();
    }
  };
  /** Presses a key for 100 ms. The far end keeps sending audio, as some gateways do. */
  const press = (): void => {
    for (let packet = 1; packet <= 5; packet += 1) {
      call.press(packet * 160, packet === 5);
      talk(1);
    }
  };
  const command = (action: 'pause' | 'resume'): void =>
    call.session.execute({ kind: 'record', action });
  return { call, talk, press, command };
}

/** The parts that left, as `<kind> <from ms>-<until ms>`. */
function partsOf(call: RecordedSession): string[] {
  return call.parts.map((part) => {
    const from = part.at / 8;
    return part.kind === 'audio'
      ? `audio ${from}-${from + part.audio.length / 16}`
      : `${part.kind} ${from}`;
  });
}

describe('a pause by command', () => {
  test('keeps both sides’ audio in the worker', () => {
    const { call, talk, command } = noisyCall({});
    talk(25);
    command('pause');
    talk(100);
    command('resume');
    talk(25);
    call.stop();

    expect(call.log).toEqual(['paused 500 by command', 'resumed 2500', 'stopped 3000 (2000)']);
    expect(partsOf(call)).toEqual([
      ...['audio 0-500', 'pause 500', 'resume 2500', 'audio 2500-3000', 'end 3000'],
    ]);
    expect(call.right.read(4_000, 20_000).every((byte) => byte === 0xff)).toBe(true);
    expect(call.right.read(20_000, 24_000).every((byte) => byte === 0x10)).toBe(true);
  });

  test('lasts until the end of a recording that is never resumed, and counts once', () => {
    const { call, talk, command } = noisyCall({});
    talk(25);
    command('pause');
    command('pause');
    talk(75);
    call.stop();
    command('resume');

    expect(call.log).toEqual(['paused 500 by command', 'stopped 2000 (1500)']);
    expect(partsOf(call)).toEqual(['audio 0-500', 'pause 500', 'end 2000']);
  });
});

describe('a pause for keys', () => {
  test('lasts from 200 ms before the first key until 5 s after the last, and comes before the key', () => {
    const { call, talk, press } = noisyCall({ pauseOnKeys: true });
    talk(100);
    press();
    talk(200);
    press();
    talk(300);
    call.stop();

    // The first packet of the key says that it began 20 ms ago.
    expect(call.log).toEqual([
      ...['paused 1780 by keys', 'key 5', 'key 5', 'resumed 11180', 'stopped 12200 (9400)'],
    ]);
    const kept = partsOf(call).filter((part) => part.startsWith('audio'));
    expect(kept.every((part) => !/audio (\d+)-(\d+)/.exec(part)?.slice(1).some(inside))).toBe(true);
    expect(call.left.read(1_780 * 8, 11_180 * 8).every((byte) => byte === 0xff)).toBe(true);
    expect(call.left.read(11_180 * 8, 12_200 * 8).every((byte) => byte === 0x10)).toBe(true);
  });

  test('lasts while a key is held, and begins in time although its first packets were lost', () => {
    const { call, talk } = noisyCall({ pauseOnKeys: true });
    talk(100);
    for (let packet = 5; packet <= 500; packet += 1) {
      call.press(packet * 160, packet === 500);
      talk(1);
    }
    talk(260);
    call.stop();

    expect(call.log).toEqual(['paused 1700 by keys', 'key 5', 'resumed 16900', expect.anything()]);
  });

  test('begins with a key that came by SIP INFO', () => {
    const { call, talk } = noisyCall({ pauseOnKeys: true });
    talk(100);
    call.session.execute({ kind: 'sendDigit', digit: '7' });
    talk(260);
    call.stop();

    expect(call.log).toEqual(['paused 1800 by keys', 'resumed 7000', 'stopped 7200 (5200)']);
  });

  test('and one by command hold the recording together', () => {
    const { call, talk, press, command } = noisyCall({ pauseOnKeys: true });
    talk(100);
    press();
    command('pause');
    talk(300);
    command('resume');
    press();
    command('resume');
    talk(260);
    call.stop();

    expect(call.log).toEqual([
      ...['paused 1780 by keys', 'key 5', 'resumed 8100', 'paused 8100 by keys', 'key 5'],
      ...['resumed 13180', 'stopped 13400 (11400)'],
    ]);
  });

  test('is none without `pauseOnKeys`', () => {
    const { call, talk, press } = noisyCall({});
    talk(100);
    press();
    call.stop();

    expect(call.log).toEqual(['key 5', 'stopped 2100 (0)']);
  });
});

function inside(ms: string): boolean {
  return Number(ms) > 1_780 && Number(ms) < 11_180;
}
