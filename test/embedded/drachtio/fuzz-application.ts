// The application of a fuzzed engine. It speaks the control protocol itself, because the tests are
// not about how srf handles broken messages.

import { randomUUID } from 'node:crypto';
import { eventually } from '../../support/eventually.ts';
import { type ControlPeer, connectControl } from './transcripts/sockets.ts';

const METHODS = ['invite', 'options', 'register', 'message', 'info', 'subscribe', 'update'];

export type FuzzApplication = {
  place(uri: string): void;
  close(): void;
};

export async function startApplication(
  controlPort: number,
  secret: string,
): Promise<FuzzApplication> {
  let replies = 0;
  let calls = 0;
  const control: ControlPeer = await connectControl(
    controlPort,
    (payload) => {
      replies += 1;
      if (isInboundInvite(payload)) calls += 1;
      // Half of the INVITEs are refused, so that both outcomes of a server transaction occur.
      answer(control, payload, calls % 2 === 0 ? 'SIP/2.0 486 Busy Here' : 'SIP/2.0 200 OK');
    },
    () => undefined,
  );
  control.send(`${randomUUID()}|authenticate|${secret}|`);
  for (const method of METHODS) control.send(`${randomUUID()}|route|${method}`);
  await eventually(() => replies === METHODS.length + 1, 'the application is connected');
  return {
    place: (uri) => control.send(`${randomUUID()}|sip||\r\nINVITE ${uri} SIP/2.0\r\n\r\n`),
    close: () => control.close(),
  };
}

/** The calls of `fuzz-calls.ts` have the user `accept`. They are answered and not counted. */
function isInboundInvite(payload: string): boolean {
  return payload.includes('\r\nINVITE ') && !payload.includes('\r\nINVITE sip:accept@');
}

/** Acknowledges and hangs up an answered outbound call. Answers requests from the network. */
function answer(control: ControlPeer, payload: string, inviteAnswer: string): void {
  const [head = '', startLine = ''] = payload.split('\r\n', 2);
  const [, type, , , , , , , transaction = '', dialog = ''] = head.split('|');
  if (type !== 'sip') return;
  const send = (target: string, message: string) =>
    control.send(`${randomUUID()}|sip|${target}\r\n${message}\r\n\r\n`);
  if (startLine.startsWith('SIP/2.0')) {
    if (!startLine.startsWith('SIP/2.0 2') || !/^CSeq: \d+ INVITE\r$/m.test(payload)) return;
    send(`|${dialog}`, 'ACK sip:placeholder SIP/2.0');
    send(`|${dialog}`, 'BYE sip:placeholder SIP/2.0');
  } else if (!startLine.startsWith('ACK') && transaction !== 'unsolicited') {
    send(`${transaction}|`, finalAnswer(startLine, inviteAnswer));
  }
}

function finalAnswer(startLine: string, inviteAnswer: string): string {
  if (startLine.startsWith('INVITE sip:accept@')) return 'SIP/2.0 200 OK';
  if (startLine.startsWith('INVITE ')) return inviteAnswer;
  // Accepting a subscription would create a lasting dialog.
  return startLine.startsWith('SUBSCRIBE ') ? 'SIP/2.0 489 Bad Event' : 'SIP/2.0 200 OK';
}
