// The text of drachtio's control messages in both directions, i.e. the application's commands, and
// the engine's replies and notifications.

import { findBlankLine, parseHeaderLines, type SipHeader } from '../message/sip-message.ts';
import { formatTimeOfDay } from '../transaction/engine-timing.ts';

export type SipText = {
  readonly startLine: string;
  readonly headers: readonly SipHeader[];
  readonly body: string;
};

export type ControlCommand =
  | { readonly kind: 'authenticate'; readonly secret: string; readonly tags: readonly string[] }
  | { readonly kind: 'ping' }
  | { readonly kind: 'route'; readonly verb: string }
  | { readonly kind: 'removeRoute'; readonly verb: string }
  | {
      readonly kind: 'sip';
      readonly transactionId: string;
      readonly dialogId: string;
      readonly route: string;
      readonly sip: SipText;
    }
  | { readonly kind: 'proxy'; readonly fields: readonly string[] }
  | { readonly kind: 'malformed'; readonly reason: string };

export type ParsedCommand = { readonly messageId: string; readonly command: ControlCommand };

/**
 * None of the protocol's messages has this many fields. The limit bounds the work of splitting the
 * first line of a hostile message.
 */
const maxFields = 32;

export function parseCommand(payload: string): ParsedCommand {
  const lineEnd = payload.indexOf('\r\n');
  const line = lineEnd < 0 ? payload : payload.slice(0, lineEnd);
  const text = lineEnd < 0 ? '' : payload.slice(lineEnd + 2);
  const fields = line.split('|', maxFields);
  const messageId = fields[0] ?? '';
  if (fields.length < 2) {
    return { messageId, command: { kind: 'malformed', reason: 'Invalid message format' } };
  }
  return { messageId, command: commandOf(fields, text) };
}

function commandOf(fields: readonly string[], text: string): ControlCommand {
  switch (fields[1] ?? '') {
    case 'authenticate':
      return {
        kind: 'authenticate',
        secret: fields[2] ?? '',
        tags: (fields[3] ?? '').split(',').filter((tag) => tag !== ''),
      };
    case 'ping':
      return { kind: 'ping' };
    case 'route':
      return { kind: 'route', verb: fields[2] ?? '' };
    case 'remove_route':
      return { kind: 'removeRoute', verb: fields[2] ?? '' };
    case 'sip':
      return sipCommand(fields, text);
    case 'proxy':
      return { kind: 'proxy', fields };
    default:
      return { kind: 'malformed', reason: 'Unknown message type' };
  }
}

function sipCommand(fields: readonly string[], text: string): ControlCommand {
  const sip = parseSipText(text);
  if (sip === undefined) return { kind: 'malformed', reason: 'Invalid message format' };
  return {
    kind: 'sip',
    transactionId: fields[2] ?? '',
    dialogId: fields[3] ?? '',
    route: fields[4] ?? '',
    sip,
  };
}

/**
 * Parses the sketch of a SIP message that an application has sent. We don't check the start line
 * here, because that depends on what the sketch is used for.
 */
function parseSipText(text: string): SipText | undefined {
  const lineEnd = text.indexOf('\r\n');
  const startLine = lineEnd < 0 ? text : text.slice(0, lineEnd);
  const rest = lineEnd < 0 ? '' : text.slice(lineEnd + 2);
  if (rest.startsWith('\r\n')) return { startLine, headers: [], body: rest.slice(2) };
  const blank = findBlankLine(rest);
  const headers = parseHeaderLines(blank === undefined ? rest : rest.slice(0, blank.head));
  if (headers === undefined) return undefined;
  return { startLine, headers, body: blank === undefined ? '' : rest.slice(blank.body) };
}

/**
 * What a `sip` message tells the application about the SIP message: its source, size, transport,
 * address, port and time.
 */
export type MessageMeta = {
  readonly source: 'network' | 'application';
  readonly bytes: number;
  /** Empty where drachtio-server leaves it empty, or `unknown` if nothing was sent. */
  readonly protocol: string;
  readonly address: string;
  readonly port: number;
  readonly timeMs: number;
};

function metaFields(meta: MessageMeta): string {
  const { source, bytes, protocol, address, port, timeMs } = meta;
  return `${source}|${bytes}|${protocol}|${address}|${port}|${formatTimeOfDay(timeMs)}`;
}

export type SipNotice = {
  readonly meta: MessageMeta;
  readonly transactionId: string;
  readonly dialogId: string;
  /** The local address at which the request arrived. Only set for requests outside a dialog. */
  readonly local?: { readonly host: string; readonly port: number };
  readonly text: string;
};
export type SentResponseNotice = Omit<SipNotice, 'local'>;
export type SentRequestNotice = Omit<SentResponseNotice, 'dialogId'>;

export function formatSipNotice(id: string, notice: SipNotice): string {
  const local = notice.local === undefined ? '' : `${notice.local.host}|${notice.local.port}|`;
  const ids = `${notice.transactionId}|${notice.dialogId}|${local}`;
  return `${id}|sip|${metaFields(notice.meta)}|${ids}\r\n${notice.text}`;
}

export function formatRequestSent(id: string, messageId: string, sent: SentRequestNotice): string {
  return `${id}|response|${messageId}|OK|${metaFields(sent.meta)}|${sent.transactionId}|Msg sent:|\r\n${sent.text}`;
}

export function formatResponseSent(
  id: string,
  messageId: string,
  sent: SentResponseNotice,
): string {
  const ids = `${sent.transactionId}|${sent.dialogId}`;
  return `${id}|response|${messageId}|OK|${metaFields(sent.meta)}|${ids}||Msg sent:|\r\n${sent.text}`;
}

export function formatReply(
  id: string,
  messageId: string,
  verdict: 'OK' | 'NO' | 'NOK',
  ...details: readonly string[]
): string {
  return [id, 'response', messageId, verdict, ...details].join('|');
}
