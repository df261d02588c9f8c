// Sessions whose far end encrypts its audio: alone, in a bridge with a plain leg, over a new key,
// and among forged packets.

import { describe, expect, test } from 'vitest';
import { SrtpReceiver } from '../../../src/media/srtp/srtp-receiver.ts';
import { SrtpCounters, SrtpSender } from '../../../src/media/srtp/srtp-sender.ts';
import { remote } from '../support/session-bench.ts';
import { farEndAddress, newKey, openLeg, packet } from './encrypted-leg.ts';
import { PacketFuzz } from './packet-fuzz.ts';

describe('a bridge of an encrypted leg and a plain one', () => {
  test('passes the audio of both on, byte by byte', () => {
    const keys = { ours: newKey(), theirs: newKey() };
    const [encrypted, plain] = [openLeg(keys), openLeg()];
    const farEnd = {
      seal: new SrtpSender(keys.theirs),
      open: new SrtpReceiver(keys.ours),
    };
    encrypted.session.relayTo(plain.session, () => undefined);
    plain.session.relayTo(encrypted.session, () => undefined);

    for (let index = 1; index <= 200; index += 1) {
      const audio = packet(index);
      encrypted.session.receive(farEnd.seal.protect(audio), ...farEndAddress);
      plain.session.receive(audio.slice(), ...farEndAddress);
      const [toPlain, toEncrypted] = [plain.sent.at(-1), encrypted.sent.at(-1)?.slice()];
      expect(toPlain?.subarray(12)).toEqual(audio.subarray(12));
      expect(toEncrypted?.subarray(12, 172)).not.toEqual(audio.subarray(12));
      const opened = farEnd.open.unprotect(toEncrypted as Uint8Array);
      expect((opened as Uint8Array).subarray(12)).toEqual(audio.subarray(12));
      encrypted.session.tick(true);
      plain.session.tick(true);
    }
    expect(encrypted.counts).toMatchObject({ forged: 0, discarded: 0, received: 200 });
  });
});

describe('a far end that changes its key', () => {
  test('is heard with the old key until it uses the new one', () => {
    const keys = { ours: newKey(), theirs: newKey() };
    const { session, counts } = openLeg(keys);
    const before = new SrtpSender(keys.theirs);
    session.receive(before.protect(packet(1)), ...farEndAddress);
    const next = { ...keys, theirs: newKey() };
    session.applyRemote({ ...remote, srtp: next }, 'answer');

    session.receive(before.protect(packet(2)), ...farEndAddress);
    const after = before.withKey(next.theirs);
    session.receive(after.protect(packet(3)), ...farEndAddress);
    expect(counts).toMatchObject({ received: 3, forged: 0 });

    session.receive(before.protect(packet(4)), ...farEndAddress);
    expect(counts).toMatchObject({ received: 3, forged: 1 });
  });

  test('gets the same stream of ours, with the same counter, after a re-INVITE with the same key', () => {
    const keys = { ours: newKey(), theirs: newKey() };
    const { session, sent } = openLeg(keys);
    const open = new SrtpReceiver(keys.ours);
    // More than one wrap of the sequence number.
    for (let tick = 0; tick < 70_000; tick += 1) {
      if (tick === 40_000) session.applyRemote({ ...remote, srtp: { ...keys } }, 'answer');
      session.tick(true);
    }
    const heard = sent.filter((sealed) => typeof open.unprotect(sealed) !== 'string');

    expect(heard.length).toBe(sent.length);
    expect(sent.length).toBeGreaterThan(69_000);
  });
});

describe('a far end whose counter has wrapped', () => {
  function openWrappedLeg() {
    const keys = { ours: newKey(), theirs: newKey() };
    const { session, counts } = openLeg(keys);
    const seal = new SrtpSender(keys.theirs);
    const say = (index: number) => session.receive(seal.protect(packet(index)), ...farEndAddress);
    for (const index of [65_034, 65_035, 65_036, 65_037]) say(index);
    return { session, counts, keys, say };
  }

  test('is heard after a hold whose descriptions repeat the key', () => {
    const { session, counts, keys, say } = openWrappedLeg();
    session.applyRemote({ ...remote, weSend: false, srtp: { ...keys } }, 'answer');
    say(65_038);
    session.applyRemote({ ...remote, srtp: { ...keys } }, 'answer');
    say(65_039);

    expect(counts).toMatchObject({ received: 6, forged: 0 });
  });

  test('is heard with another SSRC, for which its counter is zero again', () => {
    const { session, counts, keys } = openWrappedLeg();
    session.applyRemote({ ...remote, srtp: { ...keys } }, 'answer');
    const other = new SrtpSender(keys.theirs);
    session.receive(other.protect(packet(1, { ssrc: 8 })), ...farEndAddress);

    expect(counts.forged).toBe(0);
  });
});

describe('an index is never used twice with the same key', () => {
  const firstOf = (packets: readonly Uint8Array[]) => packets.map((sealed) => readIndex(sealed));
  const readIndex = (sealed: Uint8Array) =>
    new DataView(sealed.buffer, sealed.byteOffset).getUint32(sealed.length - 14) % 2 ** 31;

  test.each([
    ['after a time without encryption', undefined],
    ['after a time with another key', { ours: newKey(), theirs: newKey() }],
  ])('%s', (_title, between) => {
    const keys = { ours: newKey(), theirs: newKey() };
    const { session, sent, reports } = openLeg(keys);
    const open = new SrtpReceiver(keys.ours);
    const run = (ticks: number) => {
      for (let tick = 0; tick < ticks; tick += 1) session.tick(true);
    };
    // One wrap of the sequence number.
    run(40_000);
    const before = sent.splice(0);
    for (const sealed of before) expect(open.unprotect(sealed)).toBeInstanceOf(Uint8Array);
    const reportsBefore = reports.splice(0);
    session.applyRemote({ ...remote, ...(between && { srtp: between }) }, 'answer');
    run(1_000);
    sent.splice(0);
    reports.splice(0);
    session.applyRemote({ ...remote, srtp: keys }, 'answer');
    run(1_000);

    for (const sealed of sent) expect(open.unprotect(sealed)).toBeInstanceOf(Uint8Array);
    const used = new Set(firstOf(reportsBefore));
    expect(used.size).toBeGreaterThan(100);
    expect(reports.length).toBeGreaterThan(1);
    expect(firstOf(reports).filter((index) => used.has(index))).toEqual([]);
  });
});

test('a key encrypts no packet after its last index', () => {
  const sender = new SrtpSender(
    newKey(),
    new SrtpCounters({ rollover: 2 ** 32 - 1, rtcpIndex: 2 ** 31 - 1 }),
  );
  sender.protect(packet(1));
  sender.protect(packet(65_000));
  sender.protectRtcp(packet(1));

  expect(() => sender.protect(packet(1))).toThrow('used up');
  expect(() => sender.protectRtcp(packet(1))).toThrow('used up');
});

test('forged, plain and replayed packets are neither heard nor followed', () => {
  const keys = { ours: newKey(), theirs: newKey() };
  const { session, counts } = openLeg(keys);
  const seal = new SrtpSender(keys.theirs);
  const first = seal.protect(packet(1));
  session.receive(first.slice(), ...farEndAddress);
  const forger = new SrtpSender(newKey());

  session.receive(forger.protect(packet(2)), ...farEndAddress);
  session.receive(packet(3), ...farEndAddress);
  session.receive(first.slice(), ...farEndAddress);
  for (let index = 4; index < 10; index += 1) {
    session.receive(forger.protect(packet(index)), '198.51.100.9', 9_000);
  }

  expect(counts).toMatchObject({ received: 1, forged: 8, discarded: 9 });
});

test('50,000 packets and reports of which most are noise, changed, repeated or hostile', () => {
  const { valid, received, invalid, discarded } = new PacketFuzz(27).run(50_000);

  expect(received).toBe(valid);
  expect(discarded).toBe(invalid);
  expect(valid).toBeGreaterThan(5_000);
  expect(invalid).toBeGreaterThan(20_000);
});
