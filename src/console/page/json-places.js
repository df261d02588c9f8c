// Finds members in a JSON text, so that the page can show where a rule set has errors.

/**
 * Finds the member that a path such as `hours.windows.0.until` names, or else the innermost member
 * around it that the text has. `text` must be valid JSON.
 *
 * @returns `from` and `until` as offsets, and `line`, which counts from 1; undefined if the path
 *   names no member of the text
 */
export function placeOf(text, path) {
  const around = [...placesIn(createReader(text), '')].filter(
    (place) => path === place.path || path.startsWith(`${place.path}.`),
  );
  const found = around.at(-1);
  if (found === undefined) return undefined;
  const { from, until } = found;
  return { from, until, line: text.slice(0, from).split('\n').length };
}

function createReader(text) {
  const tokens = [...text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g)];
  let next = 0;
  return {
    sees: (symbol) => tokens[next][0] === symbol,
    peek: () => tokens[next],
    take: () => tokens[next++],
    /** Takes the comma between two members. */
    skipComma: () => {
      if (tokens[next][0] === ',') next += 1;
    },
  };
}

/** Reads a value, and yields each of its members from the outside to the inside. */
function* placesIn(reader, prefix) {
  const [symbol] = reader.take();
  if (symbol === '{') yield* namedPlaces(reader, prefix);
  else if (symbol === '[') yield* listedPlaces(reader, prefix);
}

function* namedPlaces(reader, prefix) {
  while (!reader.sees('}')) {
    const name = reader.take();
    const path = prefix + JSON.parse(name[0]);
    yield placeAt(name, path);
    // The colon.
    reader.take();
    yield* placesIn(reader, `${path}.`);
    reader.skipComma();
  }
  reader.take();
}

function* listedPlaces(reader, prefix) {
  for (let index = 0; !reader.sees(']'); index += 1) {
    const path = `${prefix}${index}`;
    yield placeAt(reader.peek(), path);
    yield* placesIn(reader, `${path}.`);
    reader.skipComma();
  }
  reader.take();
}

const placeAt = ({ 0: token, index: from }, path) => ({ path, from, until: from + token.length });
