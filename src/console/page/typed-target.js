// Reads the target of the dial form as people write it: a number with its country code, a name of
// the sandbox, or a URI.

/** A number of North America, where area code and exchange begin with 2 to 9. */
const northAmerican = /^1?([2-9]\d\d)([2-9]\d\d)(\d{4})$/;

/** @returns `uri`, or the `message` that says why this is not a target */
export function readTarget(typed, sandbox) {
  const callee = sandbox.find(({ name }) => name === typed);
  if (callee !== undefined) return { uri: `tel:${callee.number}` };
  if (!/^\+?[\d ().-]+$/.test(typed)) return { uri: typed };
  const number = typed.replace(/[ ().-]/g, '');
  return number.startsWith('+') ? { uri: `tel:${number}` } : { message: adviceFor(number) };
}

/** We can't guess the country, only ask for it: (202) 555-0110 begins like a number of Egypt. */
function adviceFor(digits) {
  const [, area, exchange, line] = northAmerican.exec(digits) ?? [];
  if (area === undefined)
    return 'has no country code: write it with + in front, e.g. +1 202 555 0110';
  return `has no country code: write +1 ${area} ${exchange} ${line} for a North American number, otherwise + and its country code`;
}
