// Well-formed traffic to an engine under hostile input. The engine must answer it as if nothing had
// happened.

import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { eventually } from '../../support/eventually.ts';
import { request, response } from './fuzz-messages.ts';
import { openUdpPeer } from './transcripts/sockets.ts';

/**
 * Sends an OPTIONS over UDP and waits for the answer. Packets are read in order, so the engine has
 * then handled everything that was sent before.
 */
export async function roundTrip(sipPort: number): Promise<void> {
  const line = await openLine('UDP', sipPort);
  try {
    line.send(request('OPTIONS', randomId(), line.host, 'UDP'));
    await line.hears(/^SIP\/2\.0 200 /m);
  } finally {
    await line.close();
  }
}

/**
 * Sends bytes over TCP. Returns the final statuses that come back, as soon as there are `count` of
 * them.
 */
export async function exchangeOverTcp(
  sipPort: number,
  bytes: Buffer,
  count: number,
): Promise<string[]> {
  const line = await openLine('TCP', sipPort);
  try {
    line.send(bytes.toString('latin1'));
    const all = await line.hears(
      new RegExp(`(^SIP/2\\.0 [2-6][\\s\\S]*?\r\n\r\n[\\s\\S]*?){${count}}`, 'm'),
    );
    return [...all.matchAll(/^SIP\/2\.0 ([2-6]\d\d) /gm)].map(([, status = '']) => status);
  } finally {
    await line.close();
  }
}

/**
 * Makes a call to the engine, which is answered, acknowledged and hung up by the caller.
 *
 * @param meanwhile does something in the call. It gets a function that builds a request in the
 * call, and one that sends a request.
 */
export async function receiveCall(
  transport: 'UDP' | 'TCP',
  sipPort: number,
  meanwhile: (
    build: (method: string, sequence: number) => string,
    send: (text: string) => void,
  ) => Promise<void> = async () => undefined,
): Promise<void> {
  const line = await openLine(transport, sipPort);
  const id = randomId();
  const invite = request('INVITE', id, line.host, transport).replace('sip:service', 'sip:accept');
  try {
    line.send(invite);
    const ok = await line.hears(/^SIP\/2\.0 200 [\s\S]*?^CSeq: 1 INVITE\r\n[\s\S]*?\r\n\r\n/m);
    const to = /^To: .*$/m.exec(ok)?.[0].trim() ?? 'To: <sip:nobody@invalid>';
    const inDialog = (method: string, sequence: number) =>
      request(method, id, line.host, transport)
        .replace(/^To: .*$/m, `${to}\r`)
        .replace(`=z9hG4bK${id}`, `=z9hG4bK${randomId()}`)
        .replace('CSeq: 1 ', `CSeq: ${sequence} `);
    line.send(inDialog('ACK', 1));
    await meanwhile(inDialog, (text) => line.send(text));
    // A mutated request may have had any CSeq. If it was a BYE, the call has already ended.
    line.send(inDialog('BYE', maxCseq));
    await line.hears(new RegExp(`^CSeq: ${maxCseq} BYE\\r$`, 'm'));
  } finally {
    await line.close();
  }
}

/** RFC 3261 section 8.1.1.5 */
const maxCseq = 2_147_483_647;

/** Places a call through the application of the fuzz target, which acknowledges it and hangs up. */
export async function placeCallTo(place: (uri: string) => void, sipPort: number): Promise<void> {
  let heard = '';
  const peer = await openUdpPeer((text) => {
    heard += text;
    if (text.startsWith('ACK ')) return;
    peer.send(response(text, '200 OK', `127.0.0.1:${peer.port}`), sipPort);
  });
  try {
    place(`sip:far@127.0.0.1:${peer.port}`);
    await eventually(
      () => /^ACK /m.test(heard) && /^BYE /m.test(heard),
      () => `the callee hears ACK and BYE; it heard ${heard}`,
    );
  } finally {
    await peer.close();
  }
}

type Line = {
  readonly host: string;
  send(text: string): void;
  /** Resolves with the first match in everything received so far, as soon as there is one. */
  hears(pattern: RegExp): Promise<string>;
  close(): Promise<void>;
};

async function openLine(transport: 'UDP' | 'TCP', sipPort: number): Promise<Line> {
  let heard = '';
  const hears = async (pattern: RegExp) => {
    await eventually(
      () => pattern.test(heard),
      () => `the line hears ${pattern}; it heard ${heard}`,
    );
    return pattern.exec(heard)?.[0] ?? '';
  };
  const onText = (text: string) => {
    heard += text;
  };
  if (transport === 'UDP') {
    const peer = await openUdpPeer(onText);
    const send = (text: string) => peer.send(text, sipPort);
    return { host: `127.0.0.1:${peer.port}`, send, hears, close: () => peer.close() };
  }
  const socket = connect(sipPort, '127.0.0.1');
  socket.on('error', () => undefined);
  socket.on('data', (chunk) => onText(chunk.toString('latin1')));
  await once(socket, 'connect');
  return {
    host: `127.0.0.1:${socket.localPort}`,
    send: (text) => socket.write(text, 'latin1'),
    hears,
    close: async () => {
      socket.destroy();
    },
  };
}

function randomId(): string {
  return randomBytes(6).toString('hex');
}
