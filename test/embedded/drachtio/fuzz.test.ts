// Twelve thousand broken SIP messages and three thousand broken control frames, from a fixed seed.
// Whatever a carrier, a scanner or a confused client sends, the engine stays alive, works and
// forgets what is over.

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { beforeEach, describe, expect, test } from 'vitest';
import { forEachTest } from '../../support/opened.ts';
import { receiveCall } from './fuzz-calls.ts';
import {
  mutate,
  type Random,
  request,
  response,
  seededRandom,
  tortureMessages,
} from './fuzz-messages.ts';
import { type FuzzStatistics, startFuzzTarget } from './fuzz-target.ts';

const SEED = 20_261_120;
const UDP_MESSAGES = 6_000;
const TCP_MESSAGES = 4_000;
const CALL_MESSAGES = 2_000;
const CONTROL_FRAMES = 3_000;
/** This many messages fit into a socket's buffer, so that the engine reads them all. */
const BATCH = 40;
/** This many messages of every batch are answers to a call that the engine has just placed. */
const RESPONSES_PER_BATCH = 8;

const METHODS = [
  'INVITE',
  'OPTIONS',
  'REGISTER',
  'MESSAGE',
  'CANCEL',
  'ACK',
  'BYE',
  'INFO',
  'SUBSCRIBE',
  'UPDATE',
  'PRACK',
  'NOTIFY',
] as const;
const CALL_METHODS = ['INVITE', 'UPDATE', 'UPDATE', 'INFO', 'PRACK', 'ACK'] as const;
const STATUSES = [
  '180 Ringing',
  '183 Progress',
  '200 OK',
  '302 Moved',
  '486 Busy',
  '603 No',
] as const;

describe('the engine under hostile input', { timeout: 60_000 }, () => {
  let before: FuzzStatistics;

  const target = forEachTest(startFuzzTarget);
  beforeEach(async () => {
    await target.stillCalls();
    await target.settlesTo(target.statistics());
    before = target.statistics();
  });

  test(`survives ${UDP_MESSAGES} mutated requests and responses over UDP`, async () => {
    const random = seededRandom(SEED);

    for (let sent = 0; sent < UDP_MESSAGES; sent += BATCH) {
      target.placeCall();
      for (let index = 0; index < BATCH - RESPONSES_PER_BATCH; index += 1) {
        target.far.send(brokenMessage(random, `u${sent + index}`, target.far.host, 'UDP'));
      }
      await target.stillAnswers();
      const invite = target.far.takeInvites().at(-1);
      expect(invite).toBeDefined();
      for (const bytes of brokenResponses(random, invite ?? '', target.far.host)) {
        target.far.send(bytes);
      }
    }

    await target.stillCalls();
    await target.settlesTo(before);
  });

  test(`survives ${TCP_MESSAGES} mutated messages over TCP, cut anywhere`, async () => {
    const random = seededRandom(SEED + 1);
    let socket: Socket | undefined;

    for (let sent = 0; sent < TCP_MESSAGES; sent += 1) {
      // A stream that has lost its framing accepts nothing more. For this reason most streams get
      // only a few messages.
      socket = await usable(socket, random.below(6) === 0, target.sipPort);
      const host = `127.0.0.1:${socket.localPort}`;
      const bytes = brokenMessage(random, `t${sent}`, host, 'TCP');
      const cut = random.below(bytes.length + 1);
      socket.write(bytes.subarray(0, cut));
      socket.write(bytes.subarray(cut));
      if (sent % BATCH === 0) await target.stillAnswers();
    }
    socket?.destroy();

    await target.stillCalls();
    await target.settlesTo(before);
  });

  test(`survives ${CALL_MESSAGES} mutated requests within calls`, async () => {
    const random = seededRandom(SEED + 3);

    for (let sent = 0; sent < CALL_MESSAGES; sent += BATCH) {
      await receiveCall('UDP', target.sipPort, async (build, send) => {
        for (let index = 0; index < BATCH; index += 1) {
          const valid = build(random.pick(CALL_METHODS), 2 + index);
          send(mutate(Buffer.from(valid), random).toString('latin1'));
        }
        await target.stillAnswers();
      });
    }

    await target.stillCalls();
    await target.settlesTo(before);
  });

  test(`survives ${CONTROL_FRAMES} mutated frames on the control port`, async () => {
    const random = seededRandom(SEED + 2);
    let socket: Socket | undefined;

    for (let sent = 0; sent < CONTROL_FRAMES; sent += 1) {
      const last: Socket | undefined = socket;
      socket = await usable(last, random.below(10) === 0, target.controlPort);
      // Half of the clients know the secret and reach more code.
      if (socket !== last && random.below(2) === 0) {
        socket.write(frame(`id0|authenticate|${target.secret}|`));
      }
      socket.write(brokenFrame(random, sent, target.far.host));
      if (sent % BATCH === 0) await target.stillAnswers();
    }
    socket?.destroy();

    await target.stillCalls();
    await target.settlesTo(before);
  });
});

const TORTURE = tortureMessages();

function brokenMessage(random: Random, id: string, host: string, transport: 'UDP' | 'TCP'): Buffer {
  const torture = TORTURE[random.below(TORTURE.length * 3)]?.bytes;
  return mutate(torture ?? Buffer.from(request(random.pick(METHODS), id, host, transport)), random);
}

/** The last response is intact, so that the call ends even if all others were ignored. */
function brokenResponses(random: Random, invite: string, host: string): Buffer[] {
  const responses = Array.from({ length: RESPONSES_PER_BATCH - 1 }, () =>
    mutate(Buffer.from(response(invite, random.pick(STATUSES), host)), random),
  );
  return [...responses, Buffer.from(response(invite, '486 Busy', host))];
}

/** Breaks half of the messages inside a correct frame, and half together with their frame. */
function brokenFrame(random: Random, count: number, host: string): Buffer {
  const valid = controlPayload(count, random.below(9), host);
  if (random.below(2) === 0) return mutate(Buffer.from(frame(valid)), random);
  return Buffer.from(frame(mutate(Buffer.from(valid), random).toString('latin1')), 'utf8');
}

function controlPayload(count: number, kind: number, host: string): string {
  const id = `c${count}`;
  const message = 'Content-Type: text/plain\r\nX-Fuzz: yes\r\n\r\nhello';
  switch (kind) {
    case 0:
      return `${id}|ping`;
    case 1:
      return `${id}|route|publish`;
    case 2:
      return `${id}|remove_route|publish`;
    case 3:
      return `${id}|sip||\r\nMESSAGE sip:far@${host} SIP/2.0\r\n${message}`;
    case 4:
      return `${id}|sip|||sip:${host}\r\nOPTIONS sip:far@${host} SIP/2.0\r\nfrom: sip:x@localhost\r\n\r\n`;
    case 5:
      return `${id}|sip|c${count - 1}|\r\nCANCEL sip:far@${host} SIP/2.0\r\n\r\n`;
    case 6:
      return `${id}|sip|c${count - 1}|\r\nSIP/2.0 200 OK\r\n${message}`;
    case 7:
      return `${id}|proxy|c${count - 1}|remainInDialog|fullResponse||serial|2s|10s|sip:far@${host}\r\nINVITE sip:far@${host} SIP/2.0\r\n\r\n`;
    default:
      return `${id}|sip||c${count}@x;from-tag=y\r\nBYE sip:placeholder SIP/2.0\r\n\r\n`;
  }
}

function frame(payload: string): string {
  return `${Buffer.byteLength(payload)}#${payload}`;
}

/** Returns the same connection while it is usable, unless `renew` is set. */
async function usable(socket: Socket | undefined, renew: boolean, port: number): Promise<Socket> {
  if (socket !== undefined && !socket.destroyed && !renew) return socket;
  socket?.destroy();
  return open(port);
}

async function open(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  socket.resume();
  await once(socket, 'connect');
  return socket;
}
