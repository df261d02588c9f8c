// What sipp does after it got a REFER, step by step, for the scenario `refer`. Carriers differ in nothing so much as in this.

import { type Sipp, startSipp } from './sipp.ts';

/** Elements of a sipp scenario; `sequence` is for the CSeq of a request. */
export type ReferStep = (sequence: number) => string;

const tag = ';tag=callee[call_number]';
const send = (lines: readonly string[], options = ''): string =>
  `  <send${options}><![CDATA[\n${lines.join('\n')}\n]]></send>\n`;

/** The answer to the REFER, whatever was sent and received since it came. */
export function answer(status: string, headers: readonly string[] = []): ReferStep {
  return () =>
    send([
      `SIP/2.0 ${status}`,
      ...['Via:[$refer_via]', 'From:[$caller]', `To:[$callee]${tag}`, '[last_Call-ID:]'],
      ...['CSeq: [$refer_sequence] REFER', ...headers, 'Content-Length: 0', ''],
    ]);
}

/** `body`: none where it is left out. `names`: of the headers, for those who write them short. */
export function notify(
  state: string | undefined,
  body?: string,
  { event = 'Event: refer', type = 'Content-Type: message/sipfrag;version=2.0' } = {},
): ReferStep {
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

/** It hangs up; the answer may be waited for later. */
export const bye: ReferStep = (sequence) => request('BYE', sequence, ['Content-Length: 0', '']);
export const byeAnswered: ReferStep = () => '  <recv response="200"/>\n';

/** It is hung up. */
export const hungUp: ReferStep = () =>
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

export async function startReferred(steps: readonly ReferStep[]): Promise<Sipp> {
  const text = steps.map((step, index) => step(index + 1)).join('');
  return await startSipp({ scenario: 'refer', keys: { steps: text } });
}
