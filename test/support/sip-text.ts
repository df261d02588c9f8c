// Parses and writes SIP as text, as far as a scripted phone needs it.

export type Message = {
  readonly startLine: string;
  readonly method: string;
  readonly isRequest: boolean;
  readonly headers: ReadonlyMap<string, readonly string[]>;
  readonly body: string;
};

export const sdpOf = (port: number): string =>
  `v=0\r\no=far 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio ${port} RTP/AVP 0 101\r\na=rtpmap:0 PCMU/8000\r\na=rtpmap:101 telephone-event/8000\r\n`;

export function response(
  request: Message,
  status: number,
  reason: string,
  port: number,
  body = '',
): string {
  const copied = ['via', 'record-route'].flatMap((name) =>
    (request.headers.get(name) ?? []).map((value) => `${name}: ${value}`),
  );
  const to = first(request, 'to');
  return [
    `SIP/2.0 ${status} ${reason}`,
    ...copied,
    `From: ${first(request, 'from')}`,
    `To: ${to.includes(';tag=') ? to : `${to};tag=far`}`,
    `Call-ID: ${first(request, 'call-id')}`,
    `CSeq: ${first(request, 'cseq')}`,
    `Contact: <sip:far@127.0.0.1:${port}>`,
    ...(body === '' ? [] : ['Content-Type: application/sdp']),
    `Content-Length: ${Buffer.byteLength(body)}`,
    '',
    body,
  ].join('\r\n');
}

export function parse(text: string): Message | undefined {
  const [head = '', body = ''] = text.split('\r\n\r\n', 2);
  const [startLine = '', ...lines] = head.split('\r\n');
  const headers = new Map<string, string[]>();
  for (const line of lines) {
    const colon = line.indexOf(':');
    if (colon < 1) return undefined;
    const name = line.slice(0, colon).trim().toLowerCase();
    headers.set(name, [...(headers.get(name) ?? []), line.slice(colon + 1).trim()]);
  }
  const isRequest = !startLine.startsWith('SIP/2.0');
  return { startLine, method: startLine.split(' ')[0] ?? '', isRequest, headers, body };
}

export function first(message: Message, name: string): string {
  return message.headers.get(name)?.[0] ?? '';
}
