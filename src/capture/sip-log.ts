// The SIP messages of one call, bounded: of a call with many, bodies go first, then the messages in the middle.

import type { SipMessage } from '../calls/capture/capture.ts';

export type LoggedMessage = Omit<SipMessage, 'at'> & {
  /** ISO 8601. */
  readonly at: string;
  /** Of the second legs of the call: 1, 2, …; left out: its first leg. */
  readonly leg?: number;
};

export type SipLogView = {
  readonly messages: readonly LoggedMessage[];
  /** That there was no room for. */
  readonly left: number;
};

/** As JSON, compressed or not. */
const mostBytes = 60_000;
/** From here on without bodies. */
const bodiesUpTo = 40_000;
/** No reader needs more of one; it was read off a socket that bounds it much higher. */
const longestText = 6_000;
/** Of each message beside its text. */
const overheadBytes = 120;

export class SipLog {
  readonly #messages: LoggedMessage[] = [];
  #bytes = 0;
  #left = 0;

  add({ at, isOurs, transport, address, port, text }: SipMessage, leg?: number): void {
    const kept = this.#bytes < bodiesUpTo ? text : withoutBody(text);
    const redacted = redact(kept.slice(0, longestText));
    const bytes = redacted.length + overheadBytes;
    if (this.#bytes + bytes > mostBytes) {
      // How it ended is of more use than what was in between.
      const gone = this.#messages.splice(Math.floor(this.#messages.length / 2), 1)[0];
      this.#left += 1;
      if (gone !== undefined) this.#bytes -= gone.text.length + overheadBytes;
      if (this.#bytes + bytes > mostBytes) return;
    }
    this.#bytes += bytes;
    const from = { isOurs, transport, address, port };
    const ofLeg = leg === undefined ? {} : { leg };
    this.#messages.push({ at: at.toISOString(), ...from, text: redacted, ...ofLeg });
  }

  view(): SipLogView {
    return { messages: [...this.#messages], left: this.#left };
  }
}

function withoutBody(text: string): string {
  const end = text.indexOf('\r\n\r\n');
  return end < 0 ? text : text.slice(0, end + 4);
}

const hidden = '(not kept)';

/** Digest and its kin, signed identities, and whatever a trunk's own headers are likely to hide. */
const secretHeader =
  /^([ \t]*(?:[\w-]*(?:authorization|authenticate|authentication-info|token|secret|password|api-?key|cookie)[\w-]*|identity|y)[ \t]*:)[^\r\n]*(?:\r\n[ \t][^\r\n]*)*/gim;
/** `sip:user:password@host`. */
const passwordInUri = /\b(sips?:[^\s:@<>;"]{1,256}):[^\s@<>;"]{1,256}@/gi;
/** Keys of SRTP, and of the old `k=` line. */
const keyInSdp = /^(a=crypto:\S+ \S+|k=)[^\r\n]*/gim;

/**
 * Removes what a kept SIP message must not hold: answers to challenges, tokens, keys, passwords. The names stay, so that a
 * reader sees that there was something.
 */
export function redact(text: string): string {
  return text
    .replace(secretHeader, `$1 ${hidden}`)
    .replace(passwordInUri, `$1:${hidden}@`)
    .replace(keyInSdp, `$1 ${hidden}`);
}
