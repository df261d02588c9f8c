// Relays packets from one end of a bridge to the other: they form one stream of ours, whatever the
// source does with its numbers.

import { describe, expect, test } from 'vitest';
import { alawToMulaw, mulawToAlaw } from '../../../src/media/g711.ts';
import { createRtpHeader, readRtp, writeRtpHeader } from '../../../src/media/rtp/rtp-packet.ts';
import { RtpRelay } from '../../../src/media/rtp/rtp-relay.ts';
import { RtpSender } from '../../../src/media/rtp/rtp-sender.ts';
import { readAnswer } from '../../../src/media/sdp.ts';
import { type Random, randomFrom } from '../../faults/random.ts';
import { remote } from '../support/session-bench.ts';

const first = { sequence: 65_530, timestamp: 2 ** 32 - 320 };
const audio = Uint8Array.from({ length: 160 }, (_, index) => (index * 7) % 256);
const key = (duration: number) => Uint8Array.from([5, 10, duration >> 8, duration & 0xff]);

function bridge() {
  const sender = new RtpSender({
    ...{ ssrc: 0xcafe, firstSequence: first.sequence, firstTimestamp: first.timestamp },
  });
  let firsts = 0;
  const relay = new RtpRelay(sender, () => {
    firsts += 1;
  });
  const source = { sequence: 300, timestamp: 70_000, ssrc: 7, marker: false };
  const write = (payload: Uint8Array) => {
    const packet = new Uint8Array(12 + payload.length);
    writeRtpHeader(packet, { ...source, payloadType: 0 });
    packet.set(payload, 12);
    const header = createRtpHeader();
    readRtp(packet, header);
    return { packet, header };
  };
  const read = (packet: Uint8Array | undefined) => {
    if (packet === undefined) return undefined;
    const header = createRtpHeader();
    readRtp(packet, header);
    const { payloadType, marker, sequence, timestamp, ssrc } = header;
    return { payloadType, marker, sequence, timestamp, ssrc, payload: [...packet.subarray(12)] };
  };
  return {
    sender,
    relay,
    source,
    firsts: () => firsts,
    /** The payload as it is in `source`. */
    pass: (payload = audio, to = remote, codec: 'PCMU' | 'PCMA' = 'PCMU') => {
      const { packet, header } = write(payload);
      return read(relay.audio(packet, header, codec, to));
    },
    press: (payload: Uint8Array, to = remote) => {
      const { packet, header } = write(payload);
      return read(relay.event(packet, header, to));
    },
    /** Sends the source's next packet, and advances our clock with it. */
    next: (samples = 160) => {
      source.sequence = (source.sequence + 1) & 0xffff;
      source.timestamp = (source.timestamp + samples) >>> 0;
      for (let passed = 0; passed < samples; passed += 160) {
        sender.tick();
        relay.tick();
      }
    },
  };
}

const inAlaw = { ...remote, codec: 'PCMA', payloadType: 8 } as const;

describe('audio of the source', () => {
  test('gets our SSRC, consecutive numbers and a marker at its beginning, and is reported once', () => {
    const { pass, next, firsts } = bridge();
    const packets = [0, 1, 2].map(() => {
      const passed = pass();
      next();
      return passed;
    });

    expect(packets).toEqual(
      [0, 1, 2].map((index) => ({
        ...{ payloadType: 0, marker: index === 0, ssrc: 0xcafe, payload: [...audio] },
        sequence: (first.sequence + index) & 0xffff,
        timestamp: (first.timestamp + index * 160) >>> 0,
      })),
    );
    expect(firsts()).toBe(1);
  });

  test('is copied if both codecs are the same, and otherwise converted', () => {
    const { pass, next } = bridge();
    expect(pass(audio, inAlaw, 'PCMA')?.payload).toEqual([...audio]);
    next();
    expect(pass(audio, inAlaw, 'PCMU')).toMatchObject({
      ...{ payloadType: 8, payload: [...audio].map((byte) => mulawToAlaw[byte]) },
    });
    next();
    expect(pass(audio, remote, 'PCMA')).toMatchObject({
      ...{ payloadType: 0, payload: [...audio].map((byte) => alawToMulaw[byte]) },
    });
  });

  test('keeps the pauses of the source, and the marker after each', () => {
    const { pass, next, source } = bridge();
    const before = pass()?.timestamp ?? 0;
    next(1_600);
    source.marker = true;

    expect(pass()).toMatchObject({ marker: true, timestamp: (before + 1_600) >>> 0 });
  });

  test('is dropped if it is a duplicate, late, empty or too long', () => {
    const { pass, next, source, firsts } = bridge();
    expect(pass(new Uint8Array(0))).toBeUndefined();
    expect(pass(new Uint8Array(1_201))).toBeUndefined();
    expect(firsts()).toBe(0);
    const taken = pass()?.sequence ?? 0;
    expect(pass()).toBeUndefined();
    next();
    next();
    expect(pass()?.sequence).toBe((taken + 1) & 0xffff);
    source.sequence -= 1;
    expect(pass()).toBeUndefined();
  });

  test('continues in one stream at the second packet after its count restarts', () => {
    const { pass, next, source } = bridge();
    const before = pass();
    next();
    Object.assign(source, { sequence: 40_000, timestamp: 5 });
    const behind = pass();
    next();
    const second = pass();

    expect(behind).toBeUndefined();
    expect(second?.sequence).toBe(((before?.sequence ?? 0) + 1) & 0xffff);
    expect(second?.timestamp).toBe(((before?.timestamp ?? 0) + 320) >>> 0);
  });

  test('of another SSRC continues the same stream', () => {
    const { pass, next, source } = bridge();
    const before = pass();
    next();
    Object.assign(source, { ssrc: 8, sequence: 9, timestamp: 3_000_000_000 });

    expect(pass()).toMatchObject({
      ssrc: 0xcafe,
      sequence: ((before?.sequence ?? 0) + 1) & 0xffff,
      timestamp: ((before?.timestamp ?? 0) + 160) >>> 0,
    });
  });

  test('continues at our clock if its timestamps leap by more than a second', () => {
    const { pass, next, source, sender } = bridge();
    pass();
    next();
    source.timestamp = (source.timestamp + 1_000_000) >>> 0;

    expect(pass()?.timestamp).toBe(sender.clockTimestamp);
  });
});

describe('the receiver', () => {
  test('gets our silence after 100 ms without a packet, and a marker when audio continues', () => {
    const { pass, next, relay } = bridge();
    expect(relay.isFlowing).toBe(false);
    pass();
    for (let tick = 0; tick < 4; tick += 1) next();
    expect(relay.isFlowing).toBe(true);
    next();
    next();
    expect(relay.isFlowing).toBe(false);

    expect(pass()?.marker).toBe(true);
    expect(relay.isFlowing).toBe(true);
  });

  test('gets no silence of ours between packets of 60 ms', () => {
    const { pass, next, relay } = bridge();
    const flowing: boolean[] = [];
    for (let count = 0; count < 5; count += 1) {
      pass(new Uint8Array(480));
      flowing.push(relay.isFlowing);
      next(480);
      flowing.push(relay.isFlowing);
    }
    expect(new Set(flowing)).toEqual(new Set([true]));
  });

  test('gets one ordered stream, whatever the source loses, repeats, swaps, pauses and restarts', () => {
    for (let seed = 1; seed <= 100; seed += 1) {
      let sequence = first.sequence;
      let end = first.timestamp;
      for (const packet of playAnything(randomFrom(seed))) {
        expect(packet.sequence, `seed ${seed}`).toBe(sequence);
        sequence = (sequence + 1) & 0xffff;
        // A key keeps the timestamp of its beginning, whatever audio continues beside it.
        if (packet.payload.length !== audio.length) continue;
        expect((packet.timestamp - end) | 0, `seed ${seed}`).toBeGreaterThanOrEqual(0);
        end = (packet.timestamp + 160) >>> 0;
      }
    }
  });
});

/** Relays 80 packets of a source with random faults, and returns the result. */
function playAnything(random: Random) {
  const { pass, next, source, press } = bridge();
  const goOn = () => next();
  const mishaps: readonly [() => unknown, ...(() => unknown)[]] = [
    ...([goOn, goOn, goOn, goOn, goOn, () => undefined] as const),
    () => next(random.between(1, 100) * 160),
    () => {
      source.sequence = (source.sequence + random.between(-20, 9)) & 0xffff;
    },
    () => {
      source.timestamp = random.between(0, 2 ** 32 - 1);
    },
    () => {
      source.sequence = random.between(0, 0xffff);
    },
    () => {
      source.ssrc = random.between(1, 9);
    },
  ];
  return Array.from({ length: 80 }, () => {
    random.pick(mishaps)();
    return random.next() < 0.1 ? press(key(400)) : pass();
  }).filter((packet) => packet !== undefined);
}

describe('a key of the source', () => {
  test('is relayed as one event: unchanged, with one timestamp and a marker at its beginning', () => {
    const { press, source, next, pass } = bridge();
    const audible = pass();
    next();
    const at = source.timestamp;
    const passed = [400, 560, 720].map((duration) => {
      source.timestamp = at;
      const packet = press(key(duration), { ...remote, keyPayloadType: 96 });
      next();
      return packet;
    });

    expect(passed.map((packet) => packet?.payload)).toEqual(
      [400, 560, 720].map((one) => [...key(one)]),
    );
    expect(passed.map((packet) => packet?.marker)).toEqual([true, false, false]);
    expect(passed.map((packet) => packet?.payloadType)).toEqual([96, 96, 96]);
    expect(new Set(passed.map((packet) => packet?.timestamp)).size).toBe(1);
    expect(passed.map((packet) => packet?.sequence)).toEqual(
      [1, 2, 3].map((count) => ((audible?.sequence ?? 0) + count) & 0xffff),
    );
  });

  test('has the payload type that the far end declared, and is dropped if it declared none', () => {
    const answer = (formats: string, map: string) =>
      readAnswer(
        `v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\nm=audio 4000 RTP/AVP ${formats}\r\n${map}`,
        4,
      );
    const declared = answer('0 96', 'a=rtpmap:96 telephone-event/8000\r\n');
    const none = answer('0', '');
    if (declared === undefined || none === undefined) throw new Error('no SDP');

    expect(bridge().press(key(400), declared)?.payloadType).toBe(96);
    expect(bridge().press(key(400), none)).toBeUndefined();
  });

  test('is dropped if its packet is truncated', () => {
    expect(bridge().press(Uint8Array.from([5, 10, 0]))).toBeUndefined();
  });
});
