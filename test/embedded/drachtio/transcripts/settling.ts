// Waits without sleeping: for a condition, or until an engine has sent everything that it has to
// send.

import { connectControl, openUdpPeer } from './sockets.ts';

const ANSWER_DEADLINE_MS = 30_000;
const POLL_MS = 2;
/** Whatever the first round triggers in the engine has been sent by the end of the second. */
const ROUNDS = 2;

export async function until(condition: () => boolean, deadlineMs: number): Promise<boolean> {
  const end = performance.now() + deadlineMs;
  while (!condition()) {
    if (performance.now() > end) return false;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  return true;
}

/**
 * Sends a request on the control port and one on the wire. The engine sends everything that is
 * pending before it answers them.
 */
export async function settle(ports: {
  readonly sipPort: number;
  readonly controlPort: number;
}): Promise<void> {
  for (let round = 0; round < ROUNDS; round += 1) {
    let answers = 0;
    const onAnswer = () => {
      answers += 1;
    };
    const control = await connectControl(ports.controlPort, onAnswer, () => undefined);
    control.send('settle|authenticate|cymru|');
    const peer = await openUdpPeer(onAnswer);
    peer.send(settlingRequest(peer.port, round), ports.sipPort);
    await until(() => answers >= 2, ANSWER_DEADLINE_MS);
    control.close();
    await peer.close();
  }
}

/** No scenario has a route for PUBLISH, so the engine answers it by itself. */
function settlingRequest(port: number, round: number): string {
  return [
    'PUBLISH sip:settle@127.0.0.1 SIP/2.0',
    `Via: SIP/2.0/UDP 127.0.0.1:${port};branch=z9hG4bKsettle${round}`,
    'Max-Forwards: 70',
    'From: <sip:settle@127.0.0.1>;tag=settle',
    'To: <sip:settle@127.0.0.1>',
    `Call-ID: settle-${round}`,
    'CSeq: 1 PUBLISH',
    'Content-Length: 0',
    '\r\n',
  ].join('\r\n');
}
