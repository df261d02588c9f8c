// Writes the name-addr of From and P-Asserted-Identity (RFC 3261, section 25.1), with a display
// name in UTF-8.

/** Returns the name-addr. Without a name, it's only the URI in brackets. */
export function nameAddress(name: string | undefined, uri: string): string {
  return name === undefined ? `<${uri}>` : `${quoted(name)} <${uri}>`;
}

/**
 * drachtio-server copies a From with the host `localhost` into a buffer of 255 bytes
 * (`replaceHostInUri`), and refuses the request if the URI doesn't fit behind the name. The bound
 * leaves room for the address that takes the place of `localhost`.
 */
const maxFromBytes = 200;

/**
 * Returns the value of From. Without a domain, the engine writes its own address, and a name that
 * is too long for drachtio-server is cut.
 */
export function fromHeader(
  name: string | undefined,
  user: string,
  domain: string | undefined,
): string {
  if (domain !== undefined) return nameAddress(name, `sip:${user}@${domain}`);
  // The engine replaces `@localhost` with its own address.
  const uri = `sip:${user}@localhost`;
  const characters = Array.from(name ?? '');
  while (characters.length > 0) {
    const value = nameAddress(characters.join(''), uri);
    if (Buffer.byteLength(value) <= maxFromBytes) return value;
    characters.pop();
  }
  return nameAddress(undefined, uri);
}

/**
 * Returns a quoted-string. Both engines look for `localhost` in the whole value, so a name that
 * contains it gets a quoted-pair within the word, which a reader of the name doesn't see.
 */
function quoted(name: string): string {
  return `"${name.replaceAll(/["\\]/g, '\\$&').replaceAll('localhost', 'l\\ocalhost')}"`;
}
