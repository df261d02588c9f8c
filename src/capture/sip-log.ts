// One call's SIP messages, up to a size limit. If a call has many messages, we first drop the
// bodies of later messages, then whole messages from the middle.

import type { SipMessage } from '../calls/capture/capture.ts';

export type LoggedMessage = Omit<SipMessage, 'at'> & {
  /** ISO 8601. */
  readonly at: string;
  /** 1, 2, … for the call's second legs. Absent for its first leg. */
  readonly leg?: number;
};

export type SipLogView = {
  readonly messages: readonly LoggedMessage[];
  /** The number of messages that were dropped because of the size limit. */
  readonly left: number;
};

/** Limits the size of a call's messages, as JSON before compression. */
const maxBytes = 60_000;
/** Once this size has been reached, we drop the bodies of further messages. */
const bodiesUpTo = 40_000;
/**
 * Longer messages are truncated. The socket accepts much longer messages, but nobody needs to read
 * them.
 */
const maxTextLength = 6_000;
/** The size of a message in addition to its text. */
const overheadBytes = 120;

export class SipLog {
  readonly #messages: LoggedMessage[] = [];
  #bytes = 0;
  #left = 0;

  /** @param hidesKeys whether key presses must not be kept */
  add(message: SipMessage, leg?: number, hidesKeys = false): void {
    const { at, isOurs, transport, address, port } = message;
    const text = hidesKeys ? withoutKeys(message.text) : message.text;
    const kept = this.#bytes < bodiesUpTo ? text : withoutBody(text);
    const redacted = redact(kept.slice(0, maxTextLength));
    const bytes = redacted.length + overheadBytes;
    if (this.#bytes + bytes > maxBytes) {
      // The end of the call is more useful than the middle.
      const gone = this.#messages.splice(Math.floor(this.#messages.length / 2), 1)[0];
      this.#left += 1;
      if (gone !== undefined) this.#bytes -= gone.text.length + overheadBytes;
      if (this.#bytes + bytes > maxBytes) return;
    }
    this.#bytes += bytes;
    const from = { isOurs, transport, address, port };
    const legMember = leg === undefined ? {} : { leg };
    this.#messages.push({ at: at.toISOString(), ...from, text: redacted, ...legMember });
  }

  view(): SipLogView {
    return { messages: [...this.#messages], left: this.#left };
  }
}

function withoutBody(text: string): string {
  const end = text.indexOf('\r\n\r\n');
  return end < 0 ? text : text.slice(0, end + 4);
}

/**
 * Hides the key in a SIP INFO: `Signal=5` of `application/dtmf-relay`, or else the whole body,
 * which is the key itself in `application/dtmf`.
 */
export function withoutKeys(text: string): string {
  const head = withoutBody(text);
  const body = text.slice(head.length);
  if (!/^INFO /i.test(text) || body.trim() === '') return text;
  const signal = /(\bsignal\s*=\s*)[^\r\n]*/gi;
  return head + (body.search(signal) < 0 ? '*' : body.replace(signal, '$1*'));
}

const hidden = '(not kept)';

/**
 * Headers that contain Digest or similar credentials, signed identities, or most likely a trunk's
 * secret.
 */
const secretHeader =
  /^([ \t]*(?:[\w-]*(?:authorization|authenticate|authentication-info|token|secret|password|api-?key|cookie)[\w-]*|identity|y)[ \t]*:)[^\r\n]*(?:\r\n[ \t][^\r\n]*)*/gim;
/** `sip:user:password@host` */
const passwordInUri = /\b(sips?:[^\s:@<>;"]{1,256}):[^\s@<>;"]{1,256}@/gi;
/** SRTP keys, and keys in the obsolete `k=` line. */
const keyInSdp = /^(a=crypto:\S+ \S+|k=)[^\r\n]*/gim;

/**
 * Removes secrets (responses to challenges, tokens, keys, passwords) from a SIP message. We keep
 * the header names, so readers can see that something has been removed.
 */
export function redact(text: string): string {
  return text
    .replace(secretHeader, `$1 ${hidden}`)
    .replace(passwordInUri, `$1:${hidden}@`)
    .replace(keyInSdp, `$1 ${hidden}`);
}
