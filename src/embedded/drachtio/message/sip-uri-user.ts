// The user part of a SIP URI.

/** Characters of a user part that need no escape (RFC 3261, section 25.1). */
const plain = /^[A-Za-z0-9\-_.!~*'()&=+$,;?/]$/;

/** Unescapes the characters of the user part that need no escape, like sofia-sip's URL parser. */
export function unescapeUser(uri: string): string {
  const at = uri.lastIndexOf('@');
  if (at < 0) return uri;
  const user = uri.slice(0, at).replaceAll(/%[0-9A-Fa-f]{2}/g, (escaped) => {
    const character = String.fromCharCode(Number.parseInt(escaped.slice(1), 16));
    return plain.test(character) ? character : escaped;
  });
  return `${user}${uri.slice(at)}`;
}
