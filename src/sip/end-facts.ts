// Reads what the far end says about the end of a call, and about who was reached.
//
// A 603 counts as a block, and not as the callee's refusal, if it has one of these signs:
// - its reason phrase is `Network Blocked`, in any case;
// - a Reason header has the analytics version (`v=analytics1`), in its text or as a parameter.
// ATIS-1000099 requires both, but proxies replace reason phrases and drop headers they don't know,
// and neither sign has another use. A 608 (RFC 8688) is always a block, and a 607 (RFC 8197) never
// is: the callee sends it.

import type { Block, EndFacts } from '../calls/life/end-facts.ts';
import type { LegEvent } from '../calls/ports.ts';
import type { ReceivedRequest, ReceivedResponse, SipMessage } from './engine/srf-types.ts';
import { retryAfterSeconds } from './legs/failover.ts';
import {
  analyticsBlockOf,
  bounded,
  causeOf,
  cleaned,
  hostOfUrl,
  maxTextLength,
  rawText,
  splitOutsideQuotes,
  unquoted,
  webUrl,
} from './reason-header.ts';
import { uriOf } from './sip-headers.ts';

/** Returns the leg event for what a message states before the end, or undefined if it's nothing. */
export function statedIn(
  message: SipMessage,
): Extract<LegEvent, { readonly kind: 'stated' }> | undefined {
  const connectedIdentity = connectedIdentityOf(message);
  const cause = causeOf(message.get('Reason'));
  if (connectedIdentity === undefined && cause === undefined) return undefined;
  return {
    kind: 'stated',
    ...(connectedIdentity === undefined ? {} : { connectedIdentity }),
    ...(cause === undefined ? {} : { cause }),
  };
}

/** The far end's facts in a final response that ends a call, or in its BYE. */
export function endFactsOf(message: ReceivedResponse | ReceivedRequest): {
  readonly facts?: EndFacts;
} {
  const cause = causeOf(message.get('Reason'));
  const retryAfterS = retryAfterSeconds(message.get('Retry-After'));
  const warning = warningText(message.get('Warning'));
  const block = 'status' in message ? blockOf(message) : undefined;
  const facts = {
    ...(cause === undefined ? {} : { cause }),
    ...(retryAfterS === undefined ? {} : { retryAfterS }),
    ...(warning === undefined ? {} : { warning }),
    ...(block === undefined ? {} : { block }),
  };
  return Object.keys(facts).length === 0 ? {} : { facts };
}

function blockOf(response: ReceivedResponse): Block | undefined {
  const { status, reason } = response;
  const statusLine = rawText(`${status} ${reason}`);
  if (status === 603) {
    const block = analyticsBlockOf(response.get('Reason'));
    if (block !== undefined) return block;
    const isNamed = cleaned(reason.slice(0, 100)).toLowerCase() === 'network blocked';
    const raw = rawText(response.get('Reason') ?? '') || statusLine;
    return isNamed ? { raw } : undefined;
  }
  return status === 608 ? rejectionOf(response.get('Call-Info'), statusLine) : undefined;
}

/** Real responses have one Call-Info value with a card. */
const maxCallInfos = 10;

/**
 * Reads a 608 (RFC 8688): `Call-Info: <https://block.example/card>;purpose=jwscard` links to a
 * signed card with the blocker's contact details. We pass the link on and never fetch it.
 */
function rejectionOf(callInfo: string | undefined, statusLine: string): Block {
  const infos = splitOutsideQuotes((callInfo ?? '').slice(0, 4_096), ',', maxCallInfos, {
    brackets: true,
  });
  const card = infos.find((info) => /;\s*purpose\s*=\s*"?(jwscard|jcard|card)\b/i.test(info));
  const url = webUrl(uriOf(card));
  return {
    ...(url === undefined ? {} : { by: hostOfUrl(url), url }),
    raw: card === undefined ? statusLine : rawText(card),
  };
}

/** Reads the first value, e.g. `307 isi.edu "Session parameter not understood"`. */
function warningText(header: string | undefined): string | undefined {
  const [first = ''] = splitOutsideQuotes((header ?? '').slice(0, 4_096), ',', 2);
  const [, code = '', text = ''] = /^\s*(\d{3})\s+\S+\s+(".*)$/s.exec(first) ?? [];
  const warning = code === '' ? cleaned(first) : cleaned(`${code} ${unquoted(text)}`);
  return warning === '' ? undefined : bounded(warning, maxTextLength);
}

/** E.164 numbers have at most 15 digits, but a carrier may add a prefix. */
const maxNumberLength = 32;
const maxUriLength = 256;

/**
 * Reads who was reached from a P-Asserted-Identity (RFC 3325).
 *
 * @returns a number, or a SIP URI without parameters if its user part isn't a number. undefined if
 * the header is missing or unusable, or if the callee asked to keep the identity private (RFC 3325,
 * section 9.3)
 */
export function connectedIdentityOf(message: SipMessage): string | undefined {
  if (/\b(id|user|header)\b/i.test(message.get('Privacy') ?? '')) return undefined;
  const header = (message.get('P-Asserted-Identity') ?? '').slice(0, 4_096);
  const uris = splitOutsideQuotes(header, ',', 4, { brackets: true }).flatMap(
    (value) => uriOf(value) ?? [],
  );
  return uris.map(numberOf).find((number) => number !== undefined) ?? sipUriOf(uris[0]);
}

function numberOf(uri: string): string | undefined {
  const user = /^(?:tel:|sips?:)([^;@]{1,64})/i.exec(uri)?.[1] ?? '';
  const digits = user.replace(/[-.()]/g, '');
  return /^\+?\d{2,}$/.test(digits) && digits.length <= maxNumberLength ? digits : undefined;
}

function sipUriOf(uri: string | undefined): string | undefined {
  const bare = /^sips?:[^\s;?<>"]+/i.exec(uri ?? '')?.[0];
  const isAnonymous = /^sips?:anonymous@|@anonymous\.invalid$/i.test(bare ?? '');
  return bare === undefined || isAnonymous || bare.length > maxUriLength ? undefined : bare;
}
