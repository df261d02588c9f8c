// Groups the digits of a number with the formats of its calling code. Pure: `phone-numbers.js` has
// the table.

/** No calling code is longer, and none begins with another one. */
const longestCode = 3;

/**
 * A number without `+` is returned as it is, because it may be a national one, and so is anything
 * else that isn't a number.
 *
 * @param formats the formats of each calling code, in order: pattern, groups, leading digits
 */
export function writeNumber(text, formats) {
  const [, digits, extension = ''] = /^\+(\d{5,15})(;ext=\d+)?$/.exec(text) ?? [];
  if (digits === undefined) return text;
  for (let length = 1; length <= longestCode; length += 1) {
    const code = digits.slice(0, length);
    const known = formats[code];
    if (known === undefined) continue;
    return `+${code} ${grouped(digits.slice(length), known)}${extension.replace(';ext=', ' ext. ')}`;
  }
  return text;
}

/** National numbers have fewer digits, or begin with 0, in nearly all countries. */
const fewestInternationalDigits = 11;

/**
 * Groups a caller ID, which may come without `+`. It then stays without it, because we can't be
 * certain that the number begins with a calling code.
 */
export function writeCaller(text, formats) {
  const isBare = /^\d+$/.test(text) && text.length >= fewestInternationalDigits;
  return isBare ? writeNumber(`+${text}`, formats).slice(1) : writeNumber(text, formats);
}

function grouped(national, formats) {
  for (const [pattern, groups, leading = ''] of formats) {
    const isWhole = new RegExp(`^(?:${pattern})$`).test(national);
    if (isWhole && new RegExp(`^(?:${leading})`).test(national)) {
      const spaced = national.replace(new RegExp(pattern), groups);
      // Brackets and dashes differ from country to country, blanks are read by everyone.
      return spaced.replace(/[^\d]+/g, ' ').trim();
    }
  }
  return national;
}
