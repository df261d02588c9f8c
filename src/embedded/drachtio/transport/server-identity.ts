// Checks that a certificate belongs to the host that we called (RFC 5922 section 7). It counts if
// subjectAltName contains the host as a `sip:` URI, DNS name or IP address. We differ from the RFC
// in one point: a wildcard (`*.sip.example`) matches one label, as in HTTPS, because carriers use
// such certificates. The RFC forbids wildcards.

import { checkServerIdentity, type PeerCertificate } from 'node:tls';
import { splitOutsideQuotes } from '../message/sip-grammar.ts';

/** Maximum length of the names that we repeat, because the far end chooses them. */
const maxShownNames = 100;

/** @returns an error that says for whom the certificate is, or undefined if it's for `name` */
export function checkSipIdentity(name: string, certificate: PeerCertificate): Error | undefined {
  if (checkServerIdentity(name, certificate) === undefined) return undefined;
  const names = alternativeNames(certificate);
  const wanted = `URI:sip:${name.toLowerCase()}`;
  if (
    names.some(
      (entry) => entry.replace(/^URI:sip:/i, 'URI:sip:').toLowerCase() === wanted.toLowerCase(),
    )
  )
    return undefined;
  return new WrongNameError(name, shownNames(names, certificate));
}

export class WrongNameError extends Error {
  constructor(wanted: string, found: string) {
    super(
      found === ''
        ? `certificate has no name, and is not for ${wanted}`
        : `certificate is for ${found}, not for ${wanted}`,
    );
  }
}

/** Node puts an entry into quotes if it contains a comma, so that no entry can imitate another. */
function alternativeNames({ subjectaltname }: PeerCertificate): readonly string[] {
  return splitOutsideQuotes(subjectaltname ?? '', ',').map((entry) => entry.trim());
}

function shownNames(names: readonly string[], { subject }: PeerCertificate): string {
  const hosts = names.flatMap(
    (entry) => /^(?:DNS|IP Address|URI):([^"\s]+)$/.exec(entry)?.[1] ?? [],
  );
  const common = [subject?.CN ?? []].flat();
  const text = (hosts.length > 0 ? hosts : common).join(', ').replace(/[^\x20-\x7e]/g, '?');
  return text.length > maxShownNames ? `${text.slice(0, maxShownNames)}...` : text;
}
