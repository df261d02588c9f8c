// A method that an address does not take is a 405 that names those which it does (RFC 9110 section 15.5.6). The router only
// says that there is no such route: here the address is looked for among all of them.

import type { ApiInstance } from './http.ts';
import { ProblemError } from './problem.ts';

type Address = { readonly pattern: RegExp; readonly methods: Set<string> };

/** To be called before there are routes. */
export function refuseWrongMethods(server: ApiInstance, longestParameter: number): void {
  const addresses = new Map<string, Address>();
  server.addHook('onRoute', ({ url, method }) => {
    const address = addresses.get(url) ?? {
      pattern: patternOf(url, longestParameter),
      methods: new Set(),
    };
    addresses.set(url, address);
    for (const name of [method].flat()) address.methods.add(name);
  });
  // Before the body is read: it is of no interest.
  server.addHook('onRequest', async (request) => {
    if (!request.is404) return;
    const [path = ''] = request.url.split('?');
    const allow = [...addresses.values()].flatMap(({ pattern, methods }) =>
      pattern.test(path) ? [...methods] : [],
    );
    if (allow.length === 0) return;
    throw new ProblemError('method-not-allowed', 'The address does not take this method.', {
      allow: [...new Set(allow)].sort(),
    });
  });
}

/** Of the router's notation, parameters and a last wildcard. */
function patternOf(url: string, longestParameter: number): RegExp {
  const source = url
    .replaceAll(/[.+?^${}()|[\]\\]/g, '\\$&')
    .replaceAll('*', '.*')
    .replaceAll(/:\w+/g, `[^/]{1,${longestParameter}}`);
  return new RegExp(`^${source}$`);
}
