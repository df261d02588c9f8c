// Compares one message of the engine with the recorded one, field by field and header by header.
// The description of a difference is the same in every run.

import type { Naming } from './naming.ts';

/** One difference: its place (`aspect`), the text of the real server and the text of the engine. */
export type Mismatch = {
  readonly aspect: string;
  readonly recorded: string;
  readonly live: string;
};

type SipText = {
  readonly startLine: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string;
};

const REPLY_FIELDS = ['source', 'bytes', 'protocol', 'address', 'port', 'time', 'transaction'];
const FIELD_NAMES: Readonly<Record<string, readonly string[]>> = {
  response: ['id', 'type', 'request id', 'status', ...REPLY_FIELDS],
  sip: ['id', 'type', ...REPLY_FIELDS, 'dialog', 'local address', 'local port'],
};

/** Returns a short name that is the same in both runs: `180 INVITE`, `BYE`. */
export function sipLabel(text: string): string {
  const { startLine, headers } = parseSip(text);
  const method = header(headers, 'CSeq')?.split(' ')[1] ?? '?';
  return startLine.startsWith('SIP/2.0 ') ? `${startLine.slice(8, 11)} ${method}` : method;
}

export function controlLabel(payload: string): string {
  const { fields, sip } = splitPayload(payload);
  if (fields[1] === 'response') {
    const status = fields[3] === 'OK' && fields.at(-1) === 'done' ? 'OK done' : fields[3];
    return sip === undefined ? `reply ${status}` : `reply ${status} with ${sipLabel(sip)}`;
  }
  return sip === undefined ? `${fields[1]}` : `${fields[1]} ${sipLabel(sip)}`;
}

/** Returns the To header, which distinguishes the branches of a forked call. */
export function toHeader(text: string): string {
  return header(parseSip(text).headers, 'To') ?? '';
}

/** Returns a far end's answer to an unexpected request that must be ended. */
export function plainAnswer(request: string): string | undefined {
  const { startLine, headers } = parseSip(request);
  if (startLine.startsWith('SIP/2.0') || startLine.startsWith('ACK ')) return undefined;
  const copied = headers.filter(([name]) => /^(Via|From|To|Call-ID|CSeq)$/.test(name));
  const lines = copied.map(([name, value]) => `${name}: ${value}`);
  return ['SIP/2.0 200 OK', ...lines, 'Content-Length: 0', '', ''].join('\r\n');
}

/** Identifies the request that a reply answers. Other messages are identified by their label. */
export function controlKey(payload: string): string {
  const { fields } = splitPayload(payload);
  if (fields[1] !== 'response') return controlLabel(payload);
  return `reply to ${fields[2]}${fields.at(-1) === 'done' ? ' done' : ''}`;
}

export function compareControl(
  recorded: string,
  livePayload: string,
  naming: Naming,
  receivedLengths: ReadonlySet<number>,
): Mismatch[] {
  const live = naming.portsToRecorded(livePayload);
  const [wanted, got] = [splitPayload(recorded), splitPayload(live)];
  // Only messages that carry SIP have the fields that the table names.
  const names = wanted.sip === undefined ? ['id'] : (FIELD_NAMES[wanted.fields[1] ?? ''] ?? []);
  const found: Mismatch[] = [];
  if (wanted.fields.length !== got.fields.length) {
    found.push(
      difference('fields', wanted.fields.slice(1).join('|'), got.fields.slice(1).join('|')),
    );
  } else {
    wanted.fields.forEach((field, index) => {
      const name = names[index] ?? `field ${index}`;
      const other = got.fields[index] ?? '';
      const same =
        name === 'bytes'
          ? sameLength(field, other, splitPayload(livePayload).sip, receivedLengths)
          : name === 'id' || sameField(field, other, naming);
      if (!same) found.push(difference(name, field, other));
    });
  }
  return [...found, ...compareSip(wanted.sip, got.sip, naming)];
}

export function compareSip(
  recorded: string | undefined,
  live: string | undefined,
  naming: Naming,
): Mismatch[] {
  if (recorded === undefined || live === undefined) {
    return recorded === live ? [] : [difference('message', recorded ?? '', live ?? '')];
  }
  const [wanted, got] = [parseSip(recorded), parseSip(live)];
  const found: Mismatch[] = [];
  if (!naming.same(wanted.startLine, got.startLine)) {
    found.push(difference('start line', wanted.startLine, got.startLine));
  }
  const [wantedNames, gotNames] = [namesOf(wanted), namesOf(got)];
  if (wantedNames !== gotNames) found.push(difference('header names', wantedNames, gotNames));
  if (wanted.body !== got.body) found.push(difference('body', wanted.body, got.body));
  return [...found, ...compareHeaders(wanted.headers, got.headers, naming)];
}

function compareHeaders(
  wanted: SipText['headers'],
  got: SipText['headers'],
  naming: Naming,
): Mismatch[] {
  const callId = header(wanted, 'Call-ID') ?? '';
  return wanted.flatMap(([name, value]) => {
    const other = header(got, name);
    if (other === undefined || sameHeader(name, value, other, callId, naming)) return [];
    return [difference(`header ${name}`, value, other)];
  });
}

function sameHeader(
  name: string,
  recorded: string,
  live: string,
  recordedCallId: string,
  naming: Naming,
): boolean {
  if (name === 'Call-ID') return naming.sameName(recorded, live);
  if (name === 'CSeq' || name === 'RAck')
    return naming.sameSequence(recordedCallId, recorded, live);
  return naming.same(recorded, live);
}

function sameField(recorded: string, live: string, naming: Naming): boolean {
  const dialog = /^([^;]+);from-tag=(.+)$/.exec(recorded);
  if (dialog !== null) {
    const other = /^([^;]+);from-tag=(.+)$/.exec(live);
    return (
      naming.sameName(dialog[1] ?? '', other?.[1] ?? '') &&
      naming.sameName(dialog[2] ?? '', other?.[2] ?? '')
    );
  }
  if (/^[\da-f]{8}-[\da-f]{4}-/.test(recorded)) return naming.sameName(recorded, live);
  return naming.same(recorded, live);
}

/**
 * Compares byte counts. Zero must stay zero. Any other count must be the length of the attached
 * message or of a received one.
 */
function sameLength(
  recorded: string,
  live: string,
  attached: string | undefined,
  receivedLengths: ReadonlySet<number>,
): boolean {
  if (recorded === '0' || live === '0') return recorded === live;
  return Number(live) === Buffer.byteLength(attached ?? '') || receivedLengths.has(Number(live));
}

function splitPayload(payload: string): { fields: string[]; sip: string | undefined } {
  const end = payload.indexOf('\r\n');
  if (end === -1) return { fields: payload.split('|'), sip: undefined };
  return { fields: payload.slice(0, end).split('|'), sip: payload.slice(end + 2) };
}

function parseSip(text: string): SipText {
  const end = text.indexOf('\r\n\r\n');
  const [startLine = '', ...lines] = (end === -1 ? text : text.slice(0, end)).split('\r\n');
  return {
    startLine,
    headers: lines.map((line) => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon), line.slice(colon + 1).trim()] as const;
    }),
    body: end === -1 ? '' : text.slice(end + 4),
  };
}

function header(headers: SipText['headers'], name: string): string | undefined {
  return headers.find(([other]) => other === name)?.[1];
}

function namesOf(message: SipText): string {
  return message.headers.map(([name]) => name).join(', ');
}

function difference(aspect: string, recorded: string, live: string): Mismatch {
  return { aspect, recorded, live };
}
