// Measures what captures add to the cost of a call: the gateway's own code for the packets and
// messages of a call, and PostgreSQL's work to store them. The measure is CPU time, which other
// processes on the machine do not affect.

import { randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import type { CallId } from '../../../src/calls/contract/identity.ts';
import { writeCaptures } from '../../../src/capture/capture-store.ts';
import { Captures } from '../../../src/capture/captures.ts';
import { silentLogger } from '../../../src/lib/logger.ts';
import { EnvelopeRecorder } from '../../../src/media/envelope-recorder.ts';
import { sipCallIdOf, sipMessageOf } from '../../../src/sip/engine/sip-tap.ts';
import { openDatabase } from '../../../src/store/database.ts';
import { startPostgres } from '../../support/postgres-server.ts';
import { processesUnder, ticksPerSecond } from '../../support/process-tree.ts';
import { optionsOf } from './options.ts';

const packetsASecond = 50;
const headerBytes = 12;
/** 20 calls a second, as in `amd-calls`, in a round of 500 ms. */
const callsInStatement = 10;
const warmUpCalls = 200;

export async function benchCaptures(args: readonly string[]): Promise<void> {
  const values = optionsOf(args, {
    calls: 2_000,
    /** How long each call lasts after its answer. */
    seconds: 8,
    /** The total CPU time of a call, in milliseconds, as `amd-calls` measures it. */
    'call-ms': 52,
  });
  const { calls, seconds } = values;
  const postgres = await startPostgres();
  const database = await openDatabase({
    ...{ databaseUrl: postgres.url, dataDir: '', logger: silentLogger },
  });
  const postgresCpuMs = (): number =>
    processesUnder(postgres.pid).reduce((sum, { stat }) => sum + stat.used + stat.usedByEnded, 0) *
    (1_000 / ticksPerSecond);
  const write = (stored: Parameters<typeof writeCaptures>[1]) =>
    writeCaptures(database.pool, stored);
  try {
    const costs: [string, number][] = [
      ['loudness of the packets', await perCall(calls, 1, () => void listen(seconds))],
    ];
    await insertCalls(database.pool, warmUpCalls + 2 * calls);
    await perCall(warmUpCalls, callsInStatement, () => keep(seconds, write));
    const before = postgresCpuMs();
    const inMemory = await perCall(calls, callsInStatement, () => keep(seconds, async () => {}));
    const stored = await perCall(calls, callsInStatement, () => keep(seconds, write));
    costs.push(
      ['SIP messages, notes', inMemory],
      ['packing and the statement', Math.max(0, stored - inMemory)],
      ['PostgreSQL', (postgresCpuMs() - before) / calls],
    );
    const { rows } = await database.pool.query<{ count: string }>(
      'select count(*) from call_captures where sip is not null and audio is not null and notes is not null',
    );
    if (Number(rows[0]?.count) < warmUpCalls + calls)
      throw new Error('not all captures were stored');
    print(costs, values['call-ms']);
  } finally {
    await database.close();
    await postgres.stop();
  }
}

/** Returns the CPU time per call in milliseconds, user and system. */
async function perCall(
  calls: number,
  atOnce: number,
  work: () => Promise<void> | void,
): Promise<number> {
  const before = process.cpuUsage();
  for (let done = 0; done < calls; done += atOnce) await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000 / calls;
}

const packet = Uint8Array.from({ length: 172 }, (_, index) => (index * 37) & 255);

/**
 * Records the loudness of both directions, as a media worker does. The worker sends the record to
 * the main thread at the end of the call.
 */
function listen(seconds: number) {
  const recorder = new EnvelopeRecorder();
  for (let tick = 0; tick < seconds * packetsASecond; tick += 1) {
    recorder.hear(packet, headerBytes, packet.length, 'PCMU');
    recorder.say(packet, headerBytes, 'PCMU');
    recorder.tick();
  }
  return structuredClone(recorder.read());
}

async function keep(
  seconds: number,
  write: (stored: Parameters<typeof writeCaptures>[1]) => Promise<void>,
): Promise<void> {
  const captures = new Captures({ write, sipCallIdOf, logger: silentLogger });
  for (let index = 0; index < callsInStatement; index += 1) {
    const callId = nextCall();
    const sipCallId = randomUUID();
    captures.follow(callId, sipCallId);
    for (const text of messagesOf(sipCallId)) {
      const frame = `id|sip|network|${text.length}|udp|192.0.2.9|5060|08:00:00.1|txn|dialog|\r\n${text}`;
      const message = sipMessageOf(frame, new Date());
      if (message === undefined) throw new Error('cannot parse the SIP message of the bench');
      captures.add(message);
    }
    captures.note(callId, { kind: 'words', at: Date.now(), untilAt: Date.now(), text: 'Hello?' });
    await passEnvelope(captures, callId, seconds);
    captures.finish(callId);
  }
  await captures.flush();
}

let callsMade = 0;
function nextCall(): CallId {
  callsMade += 1;
  return `call-${callsMade}` as CallId;
}

/** Stores the calls that the captures belong to. */
async function insertCalls(pool: Pool, count: number): Promise<void> {
  await pool.query(
    `insert into calls (call_id, sid, conversation_id, account_id, app_id, bot_id, request, state, status, accepted_at, dial_before)
     select 'call-' || n, 'sid', 'conversation', 'account', 'app', 'bot', '{}', 'ended', 'completed', now(), now()
     from generate_series(1, $1) n`,
    [count],
  );
}

const envelopes = new Map<number, ReturnType<typeof listen>>();

/**
 * Passes the loudness of a call to the captures, as the media worker does at the end of the call.
 */
async function passEnvelope(captures: Captures, callId: CallId, seconds: number): Promise<void> {
  const envelope = envelopes.get(seconds) ?? listen(seconds);
  envelopes.set(seconds, envelope);
  let report: (() => void) | undefined;
  const port = captures.wrapPort({
    open: async (_callId, observer) => {
      report = () => observer.observe({ kind: 'envelope', envelope });
      return undefined;
    },
  } as Parameters<Captures['wrapPort']>[0]);
  await port.open(callId, {} as Parameters<typeof port.open>[1]);
  report?.();
}

/** Returns the SIP messages of a call that is answered and hung up. */
function messagesOf(sipCallId: string): readonly string[] {
  const sdp =
    'v=0\r\no=- 123929713136523 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\nm=audio 20004 RTP/AVP 0 8 101\r\na=rtpmap:0 PCMU/8000\r\na=rtpmap:8 PCMA/8000\r\na=rtpmap:101 telephone-event/8000\r\na=fmtp:101 0-15\r\na=ptime:20\r\na=sendrecv\r\n';
  const make = (line: string, method: string, body = '') =>
    [
      line,
      'Via: SIP/2.0/UDP 192.0.2.1:5060;rport;branch=z9hG4bK92B6F7moF66cy',
      'Max-Forwards: 70',
      'From: <sip:+15559876543@192.0.2.1:5060>;tag=U5BEaeVNJxXoV',
      'To: <sip:12025550110@192.0.2.9:5060>;tag=K4tg9',
      `Call-ID: ${sipCallId}`,
      `CSeq: 1 ${method}`,
      'Contact: <sip:192.0.2.1:5060>',
      'Allow: INVITE, ACK, BYE, CANCEL, OPTIONS, INFO, UPDATE, PRACK',
      ...(body === '' ? [] : ['Content-Type: application/sdp']),
      `Content-Length: ${body.length}`,
      '',
      body,
    ].join('\r\n');
  const to = 'sip:12025550110@192.0.2.9:5060 SIP/2.0';
  return [
    make(`INVITE ${to}`, 'INVITE', sdp),
    make('SIP/2.0 100 Trying', 'INVITE'),
    make('SIP/2.0 180 Ringing', 'INVITE'),
    make('SIP/2.0 200 OK', 'INVITE', sdp),
    make(`ACK ${to}`, 'ACK'),
    make(`BYE ${to}`, 'BYE'),
    make('SIP/2.0 200 OK', 'BYE'),
  ];
}

function print(costs: readonly (readonly [string, number])[], callMs: number): void {
  const all = costs.reduce((sum, [, ms]) => sum + ms, 0);
  for (const [name, ms] of [...costs, ['total', all] as const]) {
    console.log(`${name.padEnd(28)} ${ms.toFixed(3)} ms  ${((ms / callMs) * 100).toFixed(2)} %`);
  }
  console.log(
    `percentages of the ${callMs} ms that a call costs (--call-ms); the goal is at most 3 %`,
  );
}
