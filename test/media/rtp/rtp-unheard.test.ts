import { expect, test } from 'vitest';
import { writeRtpHeader } from '../../../src/media/rtp/rtp-packet.ts';
import { settingsFor } from '../support/observed.ts';
import { inactivityFrames, remote, SessionBench } from '../support/session-bench.ts';

const headerBytes = 12;

/** A packet of 20 ms that counts how often its audio is read. */
function watched(sequence: number) {
  const bytes = new Uint8Array(headerBytes + 160).fill(0x10);
  const timestamp = sequence * 160;
  writeRtpHeader(bytes, { payloadType: 0, marker: false, sequence, timestamp, ssrc: 7 });
  const seen = { audioReads: 0 };
  const packet = new Proxy(bytes, {
    get(target, key) {
      if (Number(key) >= headerBytes) seen.audioReads += 1;
      const value: unknown = Reflect.get(target, key, target);
      return value;
    },
  });
  return { packet, seen };
}

/** A bench whose detection is done after `frames` frames. */
function detectingFor(frames: number) {
  const pushed: number[] = [];
  const bench = new SessionBench(() => ({
    get done() {
      return pushed.length >= frames;
    },
    push: (frame) => {
      pushed.push(frame[0] ?? 0);
      return [];
    },
    stop: () => [],
  }));
  bench.session.applyRemote(remote, 'answer');
  return { bench, pushed };
}

function hear(bench: SessionBench, sequence: number): number {
  const { packet, seen } = watched(sequence);
  bench.session.receive(packet, remote.address, remote.port);
  bench.tick(1);
  return seen.audioReads;
}

/** The recorder of loudness reads every packet once. */
const readsForLoudness = 160;

test('decodes audio for a detector only: not before it starts, and not after amd_stopped', () => {
  const { bench, pushed } = detectingFor(5);
  expect(hear(bench, 1)).toBe(readsForLoudness);
  bench.session.startDetection(settingsFor());
  const reads = [2, 3, 4, 5, 6, 7, 8].map((sequence) => hear(bench, sequence) - readsForLoudness);

  expect(reads).toEqual([160, 160, 160, 160, 160, 0, 0]);
  expect(pushed).toHaveLength(5);
  expect(bench.counts).toMatchObject({ received: 8, discarded: 0 });
});

test('decodes nothing after detection was stopped', () => {
  const { bench } = detectingFor(5);
  bench.session.startDetection(settingsFor());
  bench.session.stopDetection('call-ended');

  expect(hear(bench, 1)).toBe(readsForLoudness);
});

test('reports keys, activity and source changes without a detector', () => {
  const { bench } = detectingFor(1);
  bench.session.startDetection(settingsFor());
  bench.tick(1);
  const nat = '198.51.100.2:7000';
  for (let frame = 0; frame < 151; frame += 1) bench.hear(1, nat);
  bench.receive(Uint8Array.from([5, 0x8a, 3, 0x20]), 101, nat);

  expect(bench.dtmf).toEqual(['5:100']);
  expect(bench.sent.at(-1)?.to).toBe(nat);
  expect(bench.connections).toEqual([`connect ${nat}`]);
  bench.tick(inactivityFrames - 1);
  expect(bench.inactive).toBe(0);
  bench.tick(1);
  expect(bench.inactive).toBe(1);
});
