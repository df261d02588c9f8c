// Measures how soon a message follows the beep, and whether the mailbox records all of it. The
// whole gateway calls mailboxes with ten kinds of beeps, which return the gateway's own voice at
// −20 dB. The mailboxes measure in their own recordings. In the same run, it measures an
// application that waits for the notification of the beep and then sends a play command.

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { joined, silence, tone } from '../../../src/embedded/sandbox/tones.ts';
import { readMulawWav, recordingUrl } from '../../../src/embedded/sandbox/wav-file.ts';
import { decodeTable, encode } from '../../../src/media/g711.ts';
import { mixed, moving, square } from '../../amd/tone-sounds.ts';
import { type GatewayProcess, makeDataDir, startGateway } from '../../support/gateway-process.ts';
import { type HeardPacket, StreamCallee } from '../../support/streams/stream-callee.ts';
import { makeWav } from '../../support/wav.ts';
import { optionsOf } from './options.ts';

const frameMs = 20;
const frameSamples = 160;
const echoDelayMs = 100;
const echoGain = 0.1;
/** The recording goes on this long after the beep, for the message and the hang-up. */
const recordingMs = 3_500;

const message = readMulawWav(recordingUrl('bot-message')).subarray(0, 16_000);
const messageBytes = Buffer.from(encode('PCMU', message));

/** Beeps as mailboxes have them. */
const beeps: Readonly<Record<string, Int16Array>> = {
  'one sine, 1000 Hz': tone([1_000], 400, -9),
  'low, 440 Hz': tone([440], 600, -12),
  'high, 1400 Hz': tone([1_400], 250, -10),
  'long, 850 Hz': tone([850], 1_200, -12),
  'short, 950 Hz': tone([950], 150, -9),
  'quiet, 1000 Hz': tone([1_000], 400, -26),
  'two sines': tone([800, 1_250], 400, -15),
  square: square(900, 400, -12),
  sweep: moving((part) => 700 + 500 * part, 500, -12),
  'two steps': joined([tone([850], 200, -10), tone([1_150], 250, -10)]),
};
const greetings = ['voicemail-greeting', 'announcement'] as const;

type Measured = {
  readonly beep: string;
  /**
   * From the end of the beep to the first packet of the message. Undefined if the message was not
   * recorded completely.
   */
  readonly afterMs: number | undefined;
};

export async function benchVoicemail(args: readonly string[]): Promise<void> {
  const { calls, 'at-once': atOnce } = optionsOf(args, { calls: 200, 'at-once': 50 });
  const dataDir = await makeDataDir();
  const gateway = await startGateway(dataDir.path, { MAX_CONCURRENT_CALLS: '200' });
  const application = await startApplication(gateway);
  try {
    await gateway.dialer.addSound('offer', makeWav({ samples: [message] }));
    const plan = { voicemail: { play: 'sound:offer' } };
    // Warm-up calls: the code is compiled after them.
    await inWaves(Math.min(calls, 20), atOnce, (index) => oneCall(gateway, index, plan));
    report('the plan', await inWaves(calls, atOnce, (index) => oneCall(gateway, index, plan)));
    const notified = { notifyurl: application.url };
    const few = Math.min(calls, atOnce);
    const byCommand = await inWaves(few, atOnce, (index) => oneCall(gateway, index, notified));
    report('an application that is notified and commands', byCommand);
  } finally {
    await application.close();
    await gateway.terminate();
    await dataDir.remove();
  }
}

async function inWaves(
  calls: number,
  atOnce: number,
  call: (index: number) => Promise<Measured>,
): Promise<readonly Measured[]> {
  const measured: Measured[] = [];
  for (let from = 0; from < calls; from += atOnce) {
    const wave = Array.from({ length: Math.min(atOnce, calls - from) }, (_, index) =>
      call(from + index),
    );
    measured.push(...(await Promise.all(wave)));
  }
  return measured;
}

async function oneCall(gateway: GatewayProcess, index: number, more: object): Promise<Measured> {
  // The calls do not start at the same instant.
  await sleep((index % 50) * 37);
  const names = Object.keys(beeps);
  const name = names[index % names.length] ?? '';
  const { callee } = await StreamCallee.called((target) =>
    gateway.dialer.dial({ target, machineDetection: 'detect', ...more }),
  );
  await callee.answer();
  const greeting = readMulawWav(recordingUrl(greetings[index % 2] ?? greetings[0]));
  const spoken = joined([silence(300), greeting, silence(400), beeps[name] ?? silence(0)]);
  const endedAtMs = await speak(callee, spoken);
  const at = callee.heard.indexOf(messageBytes);
  const first: HeardPacket | undefined = callee.packets[at / frameSamples];
  if (!callee.isBeingHungUp) callee.hangUp();
  setTimeout(() => void callee[Symbol.asyncDispose](), 1_000);
  return { beep: name, afterMs: at === -1 ? undefined : (first?.atMs ?? Number.NaN) - endedAtMs };
}

/**
 * Sends a packet every 20 ms, with an echo of the audio received. Returns when the last sample was
 * sent.
 */
async function speak(callee: StreamCallee, samples: Int16Array): Promise<number> {
  const startMs = performance.now();
  const frames = Math.ceil((samples.length / 8 + recordingMs) / frameMs);
  let endedAtMs = 0;
  for (let index = 0; index < frames; index += 1) {
    const frame = new Int16Array(frameSamples);
    const from = index * frameSamples;
    frame.set(samples.subarray(from, from + frameSamples));
    addEcho(frame, callee.packets.at(-echoDelayMs / frameMs));
    if (callee.isBeingHungUp) break;
    callee.send(encode('PCMU', frame));
    const leftSamples = samples.length - from;
    if (leftSamples > 0) endedAtMs = performance.now() + Math.min(leftSamples, frameSamples) / 8;
    await sleep(startMs + (index + 1) * frameMs - performance.now());
  }
  return endedAtMs;
}

function addEcho(frame: Int16Array, packet: HeardPacket | undefined): void {
  const echo = Int16Array.from(
    packet?.payload ?? [],
    (byte) => echoGain * (decodeTable.PCMU[byte] ?? 0),
  );
  if (echo.length === frame.length) frame.set(mixed(frame, echo));
}

/**
 * Starts an application that works as dialers do today: it receives the notification of the beep
 * and then sends a play command.
 */
async function startApplication(gateway: GatewayProcess) {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      response.end();
      const body = JSON.parse(Buffer.concat(chunks).toString()) as {
        readonly callId: string;
        readonly machineDetection?: string;
      };
      if (body.machineDetection !== 'amd_tone_detected') return;
      const command = { command: 'play', sound: 'sound:offer' };
      void gateway.dialer.command(body.callId, command);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/`,
    close: () => new Promise<void>((resolve) => server.close(() => resolve())),
  };
}

function report(who: string, measured: readonly Measured[]): void {
  console.log(who);
  const recorded = measured.flatMap(({ afterMs }) => (afterMs === undefined ? [] : [afterMs]));
  print('completely recorded messages', `${recorded.length} of ${measured.length}`);
  print('end of beep to first packet, ms', figures(recorded));
  for (const name of Object.keys(beeps)) {
    const ofBeep = measured.filter(({ beep }) => beep === name);
    const times = ofBeep.flatMap(({ afterMs }) => (afterMs === undefined ? [] : [afterMs]));
    print(`  ${name}`, `${figures(times)} of ${ofBeep.length}`);
  }
}

function figures(values: readonly number[]): string {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (part: number) =>
    (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN).toFixed(
      0,
    );
  return `p50 ${at(0.5)}, p99 ${at(0.99)}, latest ${at(1)}`;
}

function print(what: string, figure: string): void {
  console.log(`  ${what.padEnd(40)} ${figure}`);
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)));
}
