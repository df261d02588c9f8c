// The request URI and the Route headers that lead a request along a route set (RFC 3261 section
// 12.2.1.1), and the URIs that may become part of them.

import {
  parseNameAddress,
  parseParameters,
  parseSipUri,
  splitOutsideQuotes,
} from './sip-grammar.ts';

/**
 * Each proxy on the way adds one entry, and Max-Forwards limits a request to 70 proxies. No carrier
 * comes near that, and each of our requests repeats the entries.
 */
const maxRoutes = 32;

/**
 * Returns the URI of an address if it can become a request URI or a Route, i.e. if it's a SIP or
 * SIPS URI with a host. Returns undefined otherwise, e.g. for `tel:`.
 */
export function usableUri(address: string): string | undefined {
  const uri = parseNameAddress(address)?.uri;
  // The URI becomes part of a request line, so it can't contain white space.
  if (uri === undefined || /\s/.test(uri)) return undefined;
  return parseSipUri(uri) === undefined ? undefined : uri;
}

/**
 * Splits the values of Route or Record-Route headers into entries. Leaves out the entries that
 * nobody can send to, because the rest of the route may still lead to the far end.
 */
export function usableRoutes(values: readonly string[]): string[] {
  return values
    .flatMap((value) => splitOutsideQuotes(value, ','))
    .map((entry) => entry.trim())
    .filter((entry) => usableUri(entry) !== undefined)
    .slice(0, maxRoutes);
}

export type RequestPath = { readonly uri: string; readonly routes: readonly string[] };

/**
 * A first route without `lr` is a strict router, as in RFC 2543. It expects its own URI as the
 * request URI, and the target at the end of the route.
 */
export function requestPath(target: string, routeSet: readonly string[]): RequestPath {
  const [first = '', ...others] = routeSet;
  const uri = usableUri(first);
  if (uri === undefined || parseSipUri(uri)?.parameters.has('lr') !== false) {
    return { uri: target, routes: routeSet };
  }
  return { uri: asRequestUri(uri), routes: [...others, `<${target}>`] };
}

/** Removes what a request URI can't contain: headers and `method` (RFC 3261 section 19.1.1). */
function asRequestUri(uri: string): string {
  const [withoutHeaders = ''] = uri.split('?', 1);
  const host = withoutHeaders.lastIndexOf('@') + 1;
  const semicolon = withoutHeaders.indexOf(';', host);
  if (semicolon < 0) return withoutHeaders;
  const parameters = [...parseParameters(withoutHeaders.slice(semicolon))]
    .filter(([name]) => name !== 'method')
    .map(([name, value]) => (value === '' ? `;${name}` : `;${name}=${value}`));
  return withoutHeaders.slice(0, semicolon) + parameters.join('');
}
