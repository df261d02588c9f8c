// What a kept SIP message must not hold: answers to challenges, tokens, keys, passwords. The names stay, so that a reader sees that
// there was something.

const hidden = '(not kept)';

/** Digest and its kin, signed identities, and whatever a trunk's own headers are likely to hide. */
const secretHeader =
  /^([ \t]*(?:[\w-]*(?:authorization|authenticate|authentication-info|token|secret|password|api-?key|cookie)[\w-]*|identity|y)[ \t]*:)[^\r\n]*(?:\r\n[ \t][^\r\n]*)*/gim;
/** `sip:user:password@host`. */
const passwordInUri = /\b(sips?:[^\s:@<>;"]{1,256}):[^\s@<>;"]{1,256}@/gi;
/** Of SRTP and of the old `k=`. */
const keyInSdp = /^(a=crypto:\S+ \S+|k=)[^\r\n]*/gim;

export function redact(text: string): string {
  return text
    .replace(secretHeader, `$1 ${hidden}`)
    .replace(passwordInUri, `$1:${hidden}@`)
    .replace(keyInSdp, `$1 ${hidden}`);
}
