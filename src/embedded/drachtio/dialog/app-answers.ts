// How to read the answers that an application sketches.

import type { SipText } from '../control/control-messages.ts';
import { parseDecimal } from '../message/sip-grammar.ts';
import { headerValue, type SipRequest } from '../message/sip-message.ts';
import type { AppHeaders } from './app-headers.ts';

export type StatusLine = { readonly code: number; readonly reason: string };

export function parseStatusLine(line: string): StatusLine | undefined {
  if (!line.startsWith('SIP/2.0 ')) return undefined;
  const code = parseDecimal(line.slice(8, 11), 3);
  if (code === undefined || code < 100 || code > 699) return undefined;
  return { code, reason: line.slice(12) };
}

export function isSuccess(status: StatusLine): boolean {
  return status.code >= 200 && status.code < 300;
}

export function isForCancel(sketch: SipText): boolean {
  const cseq = sketch.headers.find((header) => header.name === 'CSeq')?.value ?? '';
  return cseq.endsWith(' CANCEL');
}

export function isReliable(status: StatusLine, given: AppHeaders): boolean {
  const early = status.code > 100 && status.code < 200;
  return early && (given.get('Require') ?? '').toLowerCase().includes('100rel');
}

export function peerSupports100rel(request: SipRequest): boolean {
  const supported = headerValue(request, 'Supported') ?? '';
  const required = headerValue(request, 'Require') ?? '';
  return `${supported},${required}`.toLowerCase().includes('100rel');
}
