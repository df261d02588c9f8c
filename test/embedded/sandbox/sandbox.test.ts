// Dials every number of the sandbox with drachtio-srf, on an engine of its own over loopback. All
// calls run at the same time, so that the file takes only as long as its longest call.

import { describe, expect, test } from 'vitest';
import { startSandbox } from '../../../src/embedded/sandbox/sandbox.ts';
import type { SandboxCallSummary } from '../../../src/embedded/sandbox/sandbox-call.ts';
import { type SandboxName, sandboxNumbers } from '../../../src/embedded/sandbox/sandbox-numbers.ts';
import { createSoundLibrary, type SoundName } from '../../../src/embedded/sandbox/sounds.ts';
import { silentLogger } from '../../../src/lib/logger.ts';
import type { Codec } from '../../../src/media/g711.ts';
import { eventually } from '../../support/eventually.ts';
import { forSuite } from '../../support/opened.ts';
import { audioPort, type Packet, type PlacedCall, startCaller } from './support/caller.ts';

const ended: SandboxCallSummary[] = [];

const sandbox = forSuite(() =>
  startSandbox({
    sipHost: '127.0.0.1',
    logger: silentLogger,
    onCallEnded: (summary) => ended.push(summary),
  }),
);
const caller = forSuite(() => startCaller(sandbox));

function numberOf(name: SandboxName): string {
  return sandboxNumbers.find((row) => row.name === name)?.number ?? '';
}

async function answered(call: PlacedCall) {
  const { status, dialog } = await call.final;
  if (dialog === undefined) throw new Error(`not answered: ${status}`);
  return dialog;
}

function endOf(name: SandboxName): SandboxCallSummary | undefined {
  return ended.find((summary) => summary.name === name);
}

/**
 * Expects one stream without loss: every packet follows its predecessor by one sequence number and
 * by 160 samples.
 */
function expectPaced(packets: readonly Packet[]): void {
  expect(packets[0]?.marker).toBe(true);
  for (const [index, packet] of packets.entries()) {
    const before = packets[index - 1];
    expect(packet.payload).toHaveLength(160);
    if (before === undefined) continue;
    expect(packet.marker).toBe(false);
    expect(packet.ssrc).toBe(before.ssrc);
    expect((packet.sequence - before.sequence) & 0xffff).toBe(1);
    expect((packet.timestamp - before.timestamp) >>> 0).toBe(160);
  }
}

function heard(packets: readonly Packet[]): Buffer {
  return Buffer.concat(packets.map(({ payload }) => payload));
}

/** Returns the payload of the sound's first frames. */
function played(sound: SoundName, frames: number, codec: Codec): Buffer {
  const library = createSoundLibrary();
  return Buffer.concat(
    Array.from({ length: frames }, (_, index) => library.frame(sound, index, codec)),
  );
}

describe.concurrent('callees that refuse', () => {
  test.each<[SandboxName, number, boolean]>([
    ['busy', 486, false],
    ['declined', 603, true],
    ['unavailable', 480, false],
    ['carrier-down', 503, false],
    ['invalid', 404, false],
    ['blocked', 603, false],
  ])('%s refuses with %i', async (name, status, rings) => {
    const call = await caller.place(numberOf(name));

    expect((await call.final).status).toBe(status);
    expect(call.provisionals.some((provisional) => provisional.status === 180)).toBe(rings);
  });

  test('refuses an unknown number with 404 Not Found', async () => {
    const call = await caller.place('+4930123456');

    expect((await call.final).status).toBe(404);
  });

  test('refuses an offer without a supported codec with 488 Not Acceptable Here', async () => {
    const call = await caller.place('declined', { formats: '18' });

    expect((await call.final).status).toBe(488);
  });
});

describe.concurrent('callees that answer', () => {
  test.each<[SandboxName, SoundName, Codec, number]>([
    ['person', 'hello', 'PCMU', 8_000],
    ['person-hangs-up', 'name', 'PCMA', 2_500],
    ['voicemail', 'voicemail', 'PCMU', 10_500],
    ['voicemail-no-beep', 'announcement', 'PCMA', 10_000],
    ['fax', 'fax', 'PCMU', 10_000],
  ])('%s plays %s in %s and hangs up after %i ms', async (name, sound, codec, afterMs) => {
    const formats = codec === 'PCMU' ? '0 8 101' : '8 0';
    const call = await caller.place(numberOf(name), { formats });
    await answered(call);
    await call.hungUp;
    const frames = afterMs / 20;
    await eventually(() => call.packets.length === frames, `${name} sent all its packets`);

    expect(call.provisionals.map(({ status }) => status)).toContain(180);
    expectPaced(call.packets);
    expect(new Set(call.packets.map(({ payloadType }) => payloadType))).toEqual(
      new Set([codec === 'PCMU' ? 0 : 8]),
    );
    expect(heard(call.packets).equals(played(sound, frames, codec))).toBe(true);
    expect(endOf(name)).toMatchObject({ end: 'callee-hung-up', codec, packetsSent: frames });
  });

  test('person-after-ringback plays ringback as early media, then answers on the same stream', async () => {
    const call = await caller.place('person-after-ringback');
    await answered(call);
    const early = call.provisionals.find(({ status }) => status === 183);
    const ringback = call.packets.length;
    await call.hungUp;

    expect(audioPort(early?.body ?? '')).toBeGreaterThan(0);
    expect(call.provisionals.map(({ status }) => status)).not.toContain(180);
    expect(ringback).toBeGreaterThanOrEqual(250);
    await eventually(() => call.packets.length === 250 + 400, 'all packets of ring and talk');
    expectPaced(call.packets);
  });

  test('silence sends silence, counts received packets, and ends with the BYE of the caller', async () => {
    const call = await caller.place(numberOf('silence'));
    const dialog = await answered(call);
    const to = { host: sandbox.host, port: audioPort(dialog.remote.sdp) };
    await eventually(() => call.packets.length >= 10, 'ten packets of silence');
    for (let count = 0; count < 5; count += 1) call.sendRtp(to);
    // Loopback keeps the order of packets. The callee's socket is read before the BYE is answered,
    // one turn of the event loop later.
    await eventually(() => call.packets.length >= 20, 'ten packets more');
    dialog.destroy();

    await eventually(() => endOf('silence') !== undefined, 'the sandbox saw the BYE');
    expect(endOf('silence')).toMatchObject({ end: 'caller-hung-up', packetsReceived: 5 });
    expect(new Set(heard(call.packets))).toEqual(new Set([0xff]));
  });

  test('talker hears the caller, replies, and reports what came through', async () => {
    const call = await caller.place(numberOf('talker'), { formats: '8 0' });
    const dialog = await answered(call);
    const to = { host: sandbox.host, port: audioPort(dialog.remote.sdp) };
    const library = createSoundLibrary();
    const hello = played('hello', Math.ceil(library.lengthMs('hello') / 20), 'PCMA');
    await eventually(() => heard(call.packets).includes(hello), 'the hello');
    for (let index = 0; index < 100; index += 1) {
      call.sendRtp(to, { payloadType: 8, payload: library.frame('name', index, 'PCMA') });
    }
    const answer = played('answer', 100, 'PCMA');
    await eventually(() => heard(call.packets).includes(answer), 'the answer');
    dialog.destroy();

    await eventually(() => endOf('talker') !== undefined, 'the sandbox saw the BYE');
    expect(endOf('talker')).toMatchObject({ codec: 'PCMA', talk: { turns: 1, answers: 1 } });
  });

  test('person-stays is held and resumed by re-INVITE', async () => {
    const call = await caller.place(numberOf('person-stays'));
    const dialog = await answered(call);
    await eventually(() => call.packets.length >= 5, 'audio before the hold');

    const held = await dialog.modify(call.offer.replace('a=sendrecv', 'a=sendonly'));
    expect(held).toContain('a=recvonly');
    const whileHeld = call.packets.length;
    const resumed = await dialog.modify(call.offer.replace('0 8 101', '8 101'));
    expect(resumed).toContain('a=sendrecv');
    await eventually(() => call.packets.length >= whileHeld + 10, 'audio after the hold');
    dialog.destroy();

    expect(call.packets.at(-1)?.payloadType).toBe(8);
    // During the hold, the timestamp advances and the sequence number does not.
    for (const [index, packet] of call.packets.entries()) {
      const before = call.packets[index - 1];
      if (before === undefined) continue;
      expect((packet.sequence - before.sequence) & 0xffff).toBe(1);
      expect(((packet.timestamp - before.timestamp) >>> 0) % 160).toBe(0);
    }
  });
});

describe.concurrent('callees that do not answer', () => {
  test('no-answer rings until the caller cancels', async () => {
    const call = await caller.place(numberOf('no-answer'));
    await eventually(() => call.provisionals.length > 0, 'it rings');
    call.cancel();

    expect((await call.final).status).toBe(487);
    await eventually(() => endOf('no-answer') !== undefined, 'the sandbox saw the CANCEL');
    expect(endOf('no-answer')).toMatchObject({ end: 'cancelled', packetsSent: 0 });
  });
});

describe('a closing sandbox', () => {
  test('hangs up answered calls and refuses ringing ones', async () => {
    const other = await startSandbox({ sipHost: '127.0.0.1', logger: silentLogger });
    const guest = await startCaller(other);
    const talking = await guest.place('person-stays');
    const ringing = await guest.place('no-answer');
    await answered(talking);
    await eventually(() => ringing.provisionals.length > 0, 'it rings');
    expect(other.activeCalls).toBe(2);

    await other.close();

    await talking.hungUp;
    expect((await ringing.final).status).toBe(480);
    await guest.close();
  });
});

describe('the sandbox under load', () => {
  test('keeps the pace of sixty calls at once', async () => {
    const other = await startSandbox({ sipHost: '127.0.0.1', logger: silentLogger });
    const guest = await startCaller(other);
    const calls = await Promise.all(Array.from({ length: 60 }, () => guest.place('person-stays')));
    await Promise.all(calls.map((call) => answered(call)));
    await eventually(() => calls.every(({ packets }) => packets.length >= 50), 'a second of audio');

    for (const { packets } of calls) expectPaced(packets);
    await other.close();
    await Promise.all(calls.map(({ hungUp }) => hungUp));
    await guest.close();
  });
});
