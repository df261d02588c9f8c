// Steps of sipp after its answer, for the scenario `in-dialog`: its handling of a REFER, in which
// carriers differ most, and its re-INVITEs.

import { createSocket } from 'node:dgram';
import { eventually } from './eventually.ts';
import { type Sipp, startSipp } from './sipp.ts';

/**
 * Returns the elements of a sipp scenario for one step. `sequence` is for the CSeq of a request.
 */
export type SippStep = (sequence: number) => string;

const tag = ';tag=callee[call_number]';
const send = (lines: readonly string[], options = ''): string =>
  `  <send${options}><![CDATA[\n${lines.join('\n')}\n]]></send>\n`;

/** Waits for a REFER. */
export const referred: SippStep = () => `  <recv request="REFER">
    <action>
      <ereg regexp=".*" search_in="hdr" header="Via:" check_it="true" assign_to="refer_via"/>
      <ereg regexp="[0-9]+" search_in="hdr" header="CSeq:" check_it="true" assign_to="refer_sequence"/>
    </action>
  </recv>
  <Reference variables="refer_via,refer_sequence"/>
`;

/** Responds to the REFER, even if sipp has sent and received other messages since. */
export function answer(status: string, headers: readonly string[] = []): SippStep {
  return () =>
    send([
      `SIP/2.0 ${status}`,
      ...['Via:[$refer_via]', 'From:[$caller]', `To:[$callee]${tag}`, '[last_Call-ID:]'],
      ...['CSeq: [$refer_sequence] REFER', ...headers, 'Content-Length: 0', ''],
    ]);
}

/**
 * Sends a NOTIFY. `body` is empty by default. The options replace the header lines, for peers that
 * write short header names.
 */
export function notify(
  state: string | undefined,
  body?: string,
  { event = 'Event: refer', type = 'Content-Type: message/sipfrag;version=2.0' } = {},
): SippStep {
  return (sequence) => {
    const sent = request('NOTIFY', sequence, [
      event,
      ...(state === undefined ? [] : [`Subscription-State: ${state}`]),
      ...(body === undefined
        ? ['Content-Length: 0', '']
        : [type, 'Content-Length: [len]', '', body]),
    ]);
    return `${sent}  <recv response="200"/>\n`;
  };
}

/** Hangs up. A later step may wait for the answer. */
export const bye: SippStep = (sequence) => request('BYE', sequence, ['Content-Length: 0', '']);
export const byeAnswered: SippStep = () => '  <recv response="200"/>\n';

/** Waits for a BYE and answers it. */
export const hungUp: SippStep = () =>
  `  <recv request="BYE"/>\n${send([
    ...['SIP/2.0 200 OK', '[last_Via:]', '[last_From:]', '[last_To:]', '[last_Call-ID:]'],
    ...['[last_CSeq:]', 'Content-Length: 0', ''],
  ])}`;

function request(method: string, sequence: number, rest: readonly string[]): string {
  return send(
    [
      `${method} [$target] SIP/2.0`,
      'Via: SIP/2.0/[transport] [local_ip]:[local_port];branch=[branch]',
      ...['Max-Forwards: 70', `From:[$callee]${tag}`, 'To:[$caller]', 'Call-ID: [call_id]'],
      `CSeq: ${sequence} ${method}`,
      'Contact: <sip:callee@[local_ip]:[local_port];transport=[transport]>',
      ...rest,
    ],
    ' retrans="500"',
  );
}

/** Waits for an OPTIONS request of the test, see `goOn`. */
export const steered: SippStep = () => '  <recv request="OPTIONS"/>\n';

export type Offer = {
  readonly port: number;
  readonly codec?: 'PCMU' | 'PCMA';
  readonly direction?: 'sendrecv' | 'sendonly' | 'inactive';
};

/** Sends a re-INVITE and acknowledges the answer. */
export function offer(offered: Offer): SippStep {
  return (sequence) => reinvite(sequence, sdp(offered, sequence), noBody);
}

/** Sends a re-INVITE without an offer, and answers ours in the ACK. */
export function answerOnRequest(answered: Offer): SippStep {
  return (sequence) => reinvite(sequence, noBody, sdp(answered, sequence));
}

const noBody = ['Content-Length: 0', ''];

function sdp(
  { port, codec = 'PCMU', direction = 'sendrecv' }: Offer,
  sequence: number,
): readonly string[] {
  const type = codec === 'PCMU' ? 0 : 8;
  return [
    ...['Content-Type: application/sdp', 'Content-Length: [len]', '', 'v=0'],
    ...[`o=sipp 1 ${sequence + 1} IN IP4 [local_ip]`, 's=-', 'c=IN IP4 127.0.0.1', 't=0 0'],
    ...[`m=audio ${port} RTP/AVP ${type} 101`, `a=rtpmap:${type} ${codec}/8000`],
    ...['a=rtpmap:101 telephone-event/8000', `a=${direction}`],
  ];
}

function reinvite(sequence: number, body: readonly string[], ackBody: readonly string[]): string {
  const invite = request('INVITE', sequence, body);
  const ack = request('ACK', sequence, ackBody).replace(' retrans="500"', '');
  return `${invite}  <recv response="100" optional="true"/>\n  <recv response="200"/>\n${ack}`;
}

/**
 * Starts sipp with these steps. `audioPort`: the port in its SDP. Default: a port at which nobody
 * listens.
 */
export async function startInDialog(steps: readonly SippStep[], audioPort = 9): Promise<Sipp> {
  const text = steps.map((step, index) => step(index + 1)).join('');
  const keys = { steps: text, audio_port: String(audioPort) };
  return await startSipp({ scenario: 'in-dialog', keys });
}

/** sipp reads its sockets rarely while the machine is busy. */
const steeredWithinMs = 30_000;

/** Continues a sipp that waits in the step `steered`. */
export async function goOn(far: Sipp, sequence = 1): Promise<void> {
  const invite = (await far.messages()).find(({ text }) => text.startsWith('INVITE '))?.text ?? '';
  const callId = /^Call-ID: *(.*?)\r?$/im.exec(invite)?.[1];
  const socket = createSocket('udp4');
  const lines = [
    ...['OPTIONS sip:callee@127.0.0.1 SIP/2.0', 'Via: SIP/2.0/UDP 127.0.0.1:9;branch=z9hG4bK-test'],
    ...['From: <sip:test@127.0.0.1>;tag=t', 'To: <sip:callee@127.0.0.1>', `Call-ID: ${callId}`],
    ...[`CSeq: ${sequence} OPTIONS`, 'Content-Length: 0', '', ''],
  ];
  socket.send(lines.join('\r\n'), far.port, far.host, () => socket.close());
}

/**
 * Continues a sipp that waits in the step `steered`, then waits until sipp acknowledges the answer
 * to its next offer.
 */
export async function steer(far: Sipp): Promise<void> {
  let messages: Awaited<ReturnType<Sipp['messages']>> = [];
  // Count each ACK once: sipp repeats an ACK if a 200 is retransmitted.
  const acks = async () => {
    messages = await far.messages();
    const sent = messages.filter(
      ({ direction, text }) => direction === 'sent' && text.startsWith('ACK '),
    );
    return new Set(sent.map(({ text }) => /^CSeq: *(\d+)/im.exec(text)?.[1])).size;
  };
  const story = () =>
    messages.map(({ direction, text }) => `${direction} ${text.split('\r\n')[0]}`).join(', ');
  const before = await acks();
  await goOn(far, before + 1);
  await eventually(
    async () => (await acks()) > before,
    () => `sipp acknowledges the answer to its offer: ${story()}`,
    steeredWithinMs,
  );
}
