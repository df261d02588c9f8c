// Reads the dial form's target as people write it: a number with its country code, a name from the
// sandbox, or a URI.

/** A North American number, whose area code and exchange each start with 2 to 9. */
const northAmerican = /^1?([2-9]\d\d)([2-9]\d\d)(\d{4})$/;

/** @returns `uri`, or a `message` that says why this isn't a target */
export function readTarget(typed, sandbox) {
  const callee = sandbox.find(({ name }) => name === typed);
  if (callee !== undefined) return { uri: `tel:${callee.number}` };
  if (!/^\+?[\d ().-]+(?:;ext=\d+)?$/.test(typed)) return { uri: typed };
  const number = typed.replace(/[ ().-]/g, '');
  return number.startsWith('+') ? { uri: `tel:${number}` } : { message: adviceFor(number) };
}

/**
 * We have to ask for the country code, because e.g. (202) 555-0110 starts like an Egyptian number.
 */
function adviceFor(digits) {
  const [, area, exchange, line] = northAmerican.exec(digits) ?? [];
  if (area === undefined)
    return 'has no country code: write it with + in front, e.g. +1 202 555 0110';
  return `has no country code: write +1 ${area} ${exchange} ${line} for a North American number, otherwise + and its country code`;
}
