// Finds the position at which a text stops being JSON (RFC 8259), and what we would expect there.
// We need our own parser because JSON.parse often doesn't report the position, and its messages
// differ between V8 versions. It only runs on texts that JSON.parse has already rejected.

export type JsonMistake = {
  /** Index in the text, or the text's length if the text ends too early. */
  readonly index: number;
  /** A human-readable description of what is expected here. */
  readonly expected: string;
};

/** The token that may come next. */
type Wanted = 'value' | 'first item' | 'next item' | 'first name' | 'next name' | 'colon' | 'more';

const expectedAt: Readonly<Record<Exclude<Wanted, 'more'>, string>> = {
  value: 'a value is expected',
  'first item': 'a value or `]` is expected',
  'next item': 'a value is expected after the comma',
  'first name': 'a member name in double quotes or `}` is expected',
  'next name': 'a member name in double quotes is expected after the comma',
  colon: 'a colon is expected after the member name',
};

const space = /[ \t\n\r]*/y;
const scalar = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;
const escaped = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;

/**
 * Finds the first mistake. The parser isn't recursive, which means that a deeply nested body can't
 * overflow the stack.
 *
 * @returns undefined if the text is JSON
 */
export function jsonMistake(text: string): JsonMistake | undefined {
  const reader = new Reader(text);
  while (reader.step());
  return reader.mistake;
}

class Reader {
  mistake: JsonMistake | undefined;
  readonly #text: string;
  /** Closing brackets that haven't been read yet. The innermost one comes last. */
  readonly #open: ('}' | ']')[] = [];
  #index = 0;
  #wanted: Wanted = 'value';

  constructor(text: string) {
    this.#text = text;
  }

  /** Reads the next token. @returns false at the end of the text and at a mistake */
  step(): boolean {
    this.#take(space);
    const char = this.#text[this.#index];
    switch (this.#wanted) {
      case 'more':
        return this.#more(char);
      case 'colon':
        return char === ':' ? this.#pass('value') : this.#fail(expectedAt.colon);
      case 'first name':
      case 'next name':
        return this.#name(char, this.#wanted);
      case 'value':
      case 'first item':
      case 'next item':
        return this.#value(char, this.#wanted);
    }
  }

  #name(char: string | undefined, wanted: 'first name' | 'next name'): boolean {
    if (char === '"') return this.#string('colon');
    if (char === '}' && wanted === 'first name') return this.#close();
    return this.#fail(expectedAt[wanted]);
  }

  #value(char: string | undefined, wanted: 'value' | 'first item' | 'next item'): boolean {
    if (char === '"') return this.#string('more');
    if (char === '{') return this.#enter('}', 'first name');
    if (char === '[') return this.#enter(']', 'first item');
    if (char === ']' && wanted === 'first item') return this.#close();
    if (!this.#take(scalar)) return this.#fail(expectedAt[wanted]);
    this.#wanted = 'more';
    return true;
  }

  /** Reads what follows a value. */
  #more(char: string | undefined): boolean {
    const end = this.#open.at(-1);
    if (end === undefined) {
      return char !== undefined && this.#fail('nothing more is expected after the value');
    }
    if (char === ',') return this.#pass(end === '}' ? 'next name' : 'next item');
    return char === end ? this.#close() : this.#fail(`a comma or \`${end}\` is expected`);
  }

  #string(then: Wanted): boolean {
    this.#index += 1;
    for (;;) {
      const code = this.#text.charCodeAt(this.#index);
      if (Number.isNaN(code)) return this.#fail('the closing `"` of a string is expected');
      if (code < 0x20) {
        return this.#fail('a string contains an unescaped line break or control character');
      }
      if (code === 0x22) return this.#pass(then);
      if (code !== 0x5c) this.#index += 1;
      else if (!this.#take(escaped)) return this.#fail('a backslash does not begin a JSON escape');
    }
  }

  #enter(end: '}' | ']', then: Wanted): boolean {
    this.#open.push(end);
    return this.#pass(then);
  }

  #close(): boolean {
    this.#open.pop();
    return this.#pass('more');
  }

  #pass(then: Wanted): boolean {
    this.#index += 1;
    this.#wanted = then;
    return true;
  }

  /** Skips the pattern. @returns false if something else comes next */
  #take(pattern: RegExp): boolean {
    pattern.lastIndex = this.#index;
    if (!pattern.test(this.#text)) return false;
    this.#index = pattern.lastIndex;
    return true;
  }

  #fail(expected: string): false {
    this.mistake = { index: this.#index, expected };
    return false;
  }
}
