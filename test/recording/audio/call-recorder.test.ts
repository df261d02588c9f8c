// A recording has two channels on the call's one clock, whatever the far end does. Both are
// compared with the far end's own marks: what it sent, and what it heard by RTP timestamps.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { encodeAlaw, encodeMulaw, mulawToAlaw } from '../../../src/media/g711.ts';
import { RecorderOfCall } from '../../../src/recording/audio/call-recorder.ts';
import { RecordedSession, type Track } from '../support/recorded-session.ts';

/** Audio whose every sample is known, and in which a shift by one sample shows. */
const voice = (length: number, seed = 0): Uint8Array =>
  Uint8Array.from({ length }, (_, index) => (index * 7 + seed * 31 + 3) % 120);

/** A click, once per second of a quiet line. */
const click = Uint8Array.from({ length: 160 }, (_, index) => (index === 80 ? 0x00 : 0xff));
const quiet = new Uint8Array(160).fill(0xff);

function recordedCall(changes: Parameters<RecordedSession['record']>[0] = {}) {
  const call = new RecordedSession();
  call.answer();
  call.record(changes);
  return call;
}

/** A recorded call to which anything can happen. */
class EventfulCall extends RecordedSession {
  readonly #agent = new RecordedSession();
  #isAlaw = false;

  constructor() {
    super();
    this.answer();
    this.record();
    this.tick();
    this.#agent.answer();
  }

  bothTalk(ticks: number): void {
    this.botSpeaks(ticks * 100);
    for (let tick = 0; tick < ticks; tick += 1) {
      const audio = voice(160, tick);
      if (this.#isAlaw)
        this.send(
          audio.map((byte) => mulawToAlaw[byte] as number),
          8,
        );
      else this.send(audio);
      this.tick();
    }
  }

  botSpeaks(samples: number): void {
    this.bot.write(voice(samples, samples));
  }

  nobodyTalks(ticks: number): void {
    this.sendNothing(ticks * 160);
    this.tick(ticks);
  }

  changeCodec(isAlaw: boolean): void {
    this.#isAlaw = isAlaw;
    this.reoffer(isAlaw ? { codec: 'PCMA', payloadType: 8 } : {});
  }

  hold(ticks: number): void {
    this.reoffer({ weSend: false, theySend: false });
    this.tick(ticks);
    this.changeCodec(this.#isAlaw);
  }

  changeSource(ssrc: number): void {
    this.far = { sequence: 1, timestamp: ssrc, ssrc };
  }

  /**
   * The agent's side sends three packets per tick, i.e. ahead of the clock. The bridge ends a frame
   * before the clock has caught up.
   */
  bridge(packets: number, samples: number): void {
    this.#agent.session.relayTo(this.session, () => undefined);
    for (let packet = 0; packet < packets; packet += 1) {
      this.#agent.send(voice(samples, packet));
      if (packet % 3 === 0) this.tick();
    }
    this.tick(Math.max(1, Math.ceil((packets * samples) / 160) - Math.ceil(packets / 3) - 1));
    this.#agent.session.stopRelay();
  }
}

describe('a recording', () => {
  test('begins with the first tick after the answer, and counts its samples', () => {
    const call = new RecordedSession();
    call.record();
    call.tick(10);
    call.answer();
    call.tick(50);
    call.stop();

    expect(call.log).toEqual(['stopped 1000 (0)']);
    expect(call.parts.map(({ kind, at }) => `${kind} ${at}`)).toEqual(['audio 0', 'end 8000']);
  });

  test('contains what was heard on the left and what was sent on the right, sample by sample', () => {
    const call = recordedCall();
    call.bot.write(voice(160 * 20, 1));
    for (let tick = 0; tick < 30; tick += 1) {
      call.send(voice(160, tick));
      call.tick();
    }
    call.stop();

    expect(difference(call.left, call.botHears, 0, 4_800)).toBe('none');
    // The jitter buffer delays the first packet by two frames.
    expect(call.left.read(320, 480)).toEqual(voice(160, 0));
    expect(call.right.read(0, 3_200)).toEqual(voice(3_200, 1));
    expect(call.right.read(3_200, 4_800)).toEqual(new Uint8Array(1_600).fill(0xff));
  });

  test('continues in step after a re-INVITE to another codec, and after another SSRC', () => {
    const call = recordedCall();
    call.bot.write(voice(160 * 300, 2));
    const send = (count: number, payload: Uint8Array, type: number) => {
      for (let tick = 0; tick < count; tick += 1) {
        call.send(payload, type);
        call.tick();
      }
    };
    send(100, new Uint8Array(160).fill(encodeMulaw(4_000)), 0);
    call.reoffer({ codec: 'PCMA', payloadType: 8 });
    send(100, new Uint8Array(160).fill(encodeAlaw(-4_000)), 8);
    call.far = { sequence: 9, timestamp: 77, ssrc: 99 };
    send(100, new Uint8Array(160).fill(encodeAlaw(8_000)), 8);
    call.stop();

    expect(call.log.at(-1)).toBe('stopped 6000 (0)');
    expect(difference(call.right, call.calleeHears, 0, 48_000)).toBe('none');
    expect(difference(call.left, call.botHears, 0, 48_000)).toBe('none');
    const levels = [60, 150, 260].map((tick) => call.left.read(tick * 160, tick * 160 + 1)[0]);
    expect(levels.map((byte) => (byte ?? 0) & 0x80)).toEqual([0x80, 0x00, 0x80]);
  });

  test('has silence of the right length where nobody sends: a hold of five minutes', () => {
    const call = recordedCall();
    const second = (left: Uint8Array) => {
      for (let tick = 0; tick < 50; tick += 1) {
        call.send(tick === 0 ? left : quiet);
        call.tick();
      }
    };
    second(click);
    call.bot.write(click);
    second(click);
    call.reoffer({ weSend: false, theySend: false });
    call.tick(5 * 60 * 50);
    call.sendNothing(5 * 60 * 8_000);
    call.reoffer({});
    call.bot.write(click);
    second(click);
    call.stop();

    expect(call.log.at(-1)).toBe('stopped 303000 (0)');
    const samples = 303 * 8_000;
    expect(clicksIn(call.left.read(0, samples))).toEqual(
      [0, 1, 302].map((at) => at * 8_000 + 320 + 80),
    );
    expect(clicksIn(call.right.read(0, samples))).toEqual([1, 302].map((at) => at * 8_000 + 80));
    expect(clicksIn(call.calleeHears.read(0, samples))).toEqual(
      clicksIn(call.right.read(0, samples)),
    );
  });

  test('lasts as long as the call when nobody sends at all', () => {
    const call = new RecordedSession();
    call.reoffer({ weSend: false });
    call.record();
    call.tick(75 * 50);
    call.stop();

    expect(call.log).toEqual(['stopped 75000 (0)']);
    expect(clean(call.left.read(0, 75 * 8_000))).toBe(0);
    expect(clean(call.right.read(0, 75 * 8_000))).toBe(0);
  });

  test('keeps a bot’s audio where it was sent, although the bot stalls', () => {
    const call = recordedCall();
    for (const pause of [0, 7, 150, 1]) {
      call.bot.write(voice(160 * 10, pause));
      call.tick(10 + pause);
    }
    call.stop();

    const samples = (40 + 158) * 160;
    expect(difference(call.right, call.calleeHears, 0, samples)).toBe('none');
    expect(call.right.read(160 * 27, 160 * 28)).not.toEqual(quiet);
  });

  test('counts late ticks, in which nothing is sent', () => {
    const call = recordedCall();
    call.bot.write(voice(160 * 10, 3));
    call.tick(5);
    call.tick(8, false);
    call.tick(5);
    call.stop();

    expect(call.log.at(-1)).toBe('stopped 360 (0)');
    expect(call.right.read(5 * 160, 13 * 160)).toEqual(new Uint8Array(8 * 160).fill(0xff));
    expect(call.right.read(13 * 160, 18 * 160)).toEqual(voice(1_600, 3).slice(800));
  });

  test('places the audio of a bridge by its timestamps, also what is ahead of the clock', () => {
    const call = recordedCall();
    const agent = new RecordedSession();
    agent.answer();
    call.tick(10);
    agent.session.relayTo(call.session, () => undefined);
    // The agent's side sends one second in a burst.
    for (let packet = 0; packet < 50; packet += 1) agent.send(voice(160, packet));
    for (let tick = 0; tick < 100; tick += 1) {
      if (tick >= 50) agent.send(voice(160, tick));
      call.tick();
      agent.tick();
    }
    call.session.stopRelay();
    agent.session.stopRelay();
    call.bot.write(voice(1_600, 9));
    call.tick(20);
    call.stop();

    const samples = 130 * 160;
    expect(difference(call.right, call.calleeHears, 0, samples)).toBe('none');
    expect(clean(call.right.read(1_600, 1_600 + 8_000))).toBe(8_000);
  });

  test('has not drifted by one sample after 30 minutes', () => {
    const call = recordedCall();
    const seconds = 30 * 60;
    for (let tick = 0; tick < seconds * 50; tick += 1) {
      const isMark = tick === 100 || tick === (seconds - 1) * 50;
      if (isMark) call.bot.write(click);
      call.send(isMark ? click : quiet);
      call.tick();
    }
    call.stop();

    const samples = seconds * 8_000;
    const marks = [2, seconds - 1].map((at) => at * 8_000 + 80);
    expect(clicksIn(call.right.read(0, samples))).toEqual(marks);
    expect(clicksIn(call.calleeHears.read(0, samples))).toEqual(marks);
    expect(clicksIn(call.left.read(0, samples))).toEqual(marks.map((at) => at + 320));
    expect(call.log.at(-1)).toBe(`stopped ${seconds * 1_000} (0)`);
  });

  test('equals what both sides heard, whatever happens in a call', () => {
    const ticks = (max: number) => fc.integer({ min: 1, max });
    const step = fc.oneof(
      ticks(90).map((count) => (call: EventfulCall) => call.bothTalk(count)),
      ticks(9_000).map((samples) => (call: EventfulCall) => call.botSpeaks(samples)),
      ticks(90).map((count) => (call: EventfulCall) => call.nobodyTalks(count)),
      ticks(12).map((count) => (call: EventfulCall) => call.tick(count, false)),
      fc.boolean().map((isAlaw) => (call: EventfulCall) => call.changeCodec(isAlaw)),
      ticks(300).map((count) => (call: EventfulCall) => call.hold(count)),
      ticks(99).map((ssrc) => (call: EventfulCall) => call.changeSource(ssrc)),
      fc.tuple(ticks(30), fc.constantFrom(80, 160, 240)).map(
        ([packets, samples]) =>
          (call: EventfulCall) =>
            call.bridge(packets, samples),
      ),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 25 }), (steps) => {
        const call = new EventfulCall();
        for (const run of steps) run(call);
        call.stop();
        const samples = call.ticks * 160;
        expect(difference(call.left, call.botHears, 0, samples)).toBe('none');
        expect(difference(call.right, call.calleeHears, 0, samples)).toBe('none');
        expect(call.errors).toEqual([]);
      }),
      { numRuns: 60 },
    );
  });
});

describe('a recorder with a bug', () => {
  test('fails the recording, and the call continues', () => {
    const call = new RecordedSession({
      createRecorder: (start, timestamp, report) => {
        const recorder = new RecorderOfCall(start, timestamp, { put: () => undefined }, report);
        let ticks = 0;
        recorder.tick = () => {
          ticks += 1;
          if (ticks === 3) throw new Error('a bug');
        };
        return recorder;
      },
    });
    call.answer();
    call.record();
    call.bot.write(voice(1_600));
    call.tick(20);

    expect(call.log).toEqual(['failed media-failed']);
    expect(call.errors).toEqual([new Error('a bug')]);
    expect(call.calleeHears.read(160, 1_760)).toEqual(voice(1_600));
  });
});

/** Returns where two tracks first differ. Comparing them as arrays would take a minute. */
function difference(one: Track, other: Track, from: number, until: number): string {
  const [left, right] = [one.read(from, until), other.read(from, until)];
  if (Buffer.compare(left, right) === 0) return 'none';
  const at = left.findIndex((byte, index) => byte !== right[index]);
  return `sample ${at} (tick ${at / 160}) of ${until}: ${left[at]} instead of ${right[at]}`;
}

function clicksIn(track: Uint8Array): number[] {
  const found: number[] = [];
  for (let at = track.indexOf(0); at !== -1; at = track.indexOf(0, at + 1)) found.push(at);
  return found;
}

/** Counts samples that aren't silence. */
function clean(track: Uint8Array): number {
  return track.filter((byte) => byte !== 0xff).length;
}
