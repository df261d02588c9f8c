// The rules for English in comments and pages. They limit the width of a line and reject phrases
// that make people read a sentence twice. `npm run lint` applies them to all files.

/** Lines are counted from 1. */
export type ProseProblem = { readonly line: number; readonly message: string };

type Passage = {
  /** The line on which the passage starts. */
  readonly line: number;
  readonly text: string;
};

export const maxColumns = 100;

/** A phrase to reject, with advice on what to write instead. */
type Rule = { readonly pattern: RegExp; readonly advice: string };

const sentenceStart = String.raw`(?:^|[.:!?]\s+)`;

const rules: readonly Rule[] = [
  {
    pattern: new RegExp(`${sentenceStart}Of `),
    advice: 'names no subject: say what the thing is',
  },
  { pattern: /: (?:there (?:is|are) )?none\b/i, advice: 'write "0 if there is no …"' },
  { pattern: /\b(?:is|are|was|were) none\b/i, advice: 'write "is not a …" or "there is no …"' },
  { pattern: /\bnone of (?:ours|its|theirs)\b/i, advice: 'name the noun' },
  { pattern: /\bwhose each\b/i, advice: 'write two sentences' },
  { pattern: /\b(?:is|are|was|were|be|been) told of\b/i, advice: 'say who reports what to whom' },
  { pattern: /\bwho has not\b/i, advice: 'name the person or process' },
  {
    pattern: new RegExp(`${sentenceStart}(?:Who|Whose|Whom)\\b[^?]*?(?:[.!]|$)`),
    advice: 'names no subject: begin with a noun',
  },
  { pattern: /\bundefined: /i, advice: 'write "undefined if …"' },
  { pattern: /\bwhat (?:be)?comes of\b/i, advice: 'write "the result of …"' },
  { pattern: /\b(?:shall|hence|thereof|whereof|wherein|thereby)\b/i, advice: 'use a plain word' },
];

/** Lints a source file, in which comments start with `//` or `/*`. */
export function problemsOfSource(source: string): readonly ProseProblem[] {
  const { passages, lines } = commentsOf(source.split('\n'));
  return inOrder([...tooWide(lines), ...passages.flatMap(refused)]);
}

/** Lints a script or configuration file, in which comments start with `#`. */
export function problemsOfScript(script: string): readonly ProseProblem[] {
  const numbered = script.split('\n').map((text, index) => ({ text, line: index + 1 }));
  const lines = numbered.filter(({ text }) => /^\s*#(?!!)/.test(text));
  return inOrder([...tooWide(lines), ...joined(lines, /^\s*#\s?/).flatMap(refused)]);
}

/** Lints a Markdown page. Skips code blocks and allows table rows of any width. */
export function problemsOfPage(page: string): readonly ProseProblem[] {
  const prose: NumberedLine[] = [];
  let isCode = false;
  for (const [index, text] of page.split('\n').entries()) {
    if (/^\s*```/.test(text)) isCode = !isCode;
    else if (!isCode) prose.push({ text: text.replaceAll(/`[^`]*`/g, '`'), line: index + 1 });
  }
  const originals = page.split('\n');
  const wide = prose
    .filter(({ text }) => !/^\s*\|/.test(text))
    .map(({ line }) => ({ line, text: originals[line - 1] ?? '' }));
  return inOrder([
    ...tooWide(wide),
    ...joined(prose, /^\s*(?:[-*>#|]|\d+\.)*\s?/).flatMap(refused),
  ]);
}

type NumberedLine = { readonly line: number; readonly text: string };

function commentsOf(source: readonly string[]): {
  readonly passages: readonly Passage[];
  readonly lines: readonly NumberedLine[];
} {
  const lines: NumberedLine[] = [];
  let isBlock = false;
  for (const [index, text] of source.entries()) {
    const isComment = isBlock || /^\s*(?:\/\/|\/\*)/.test(text);
    if (/^\s*\/\*/.test(text)) isBlock = true;
    if (isBlock && text.includes('*/')) isBlock = false;
    if (isComment) lines.push({ text, line: index + 1 });
  }
  const marks = /^\s*(?:\/\/|\/\*\*?|\*\/|\*)?\s?/;
  const cleaned = lines.map(({ text, line }) => ({ line, text: text.replace(/\s*\*\/\s*$/, '') }));
  return { passages: joined(cleaned, marks), lines };
}

/** Strips comment marks and joins adjacent lines into passages, which blank lines separate. */
function joined(lines: readonly NumberedLine[], marks: RegExp): readonly Passage[] {
  const passages: { line: number; text: string }[] = [];
  let previousLine = -1;
  for (const { text, line } of lines) {
    const words = text.replace(marks, '').trim();
    const startsAnew = line !== previousLine + 1 || /^\s*(?:\/\*\*|[-|])/.test(text);
    previousLine = words === '' ? -1 : line;
    if (words === '') continue;
    const last = passages.at(-1);
    if (startsAnew || last === undefined) passages.push({ line, text: words });
    else last.text += ` ${words}`;
  }
  return passages;
}

function refused({ line, text }: Passage): readonly ProseProblem[] {
  return rules.flatMap(({ pattern, advice }) => {
    const [phrase] = pattern.exec(text) ?? [];
    return phrase === undefined ? [] : [{ line, message: `"${phrase.trim()}": ${advice}` }];
  });
}

/** Ignores lines that can't be wrapped, e.g. because they consist of a URL. */
function tooWide(lines: readonly NumberedLine[]): readonly ProseProblem[] {
  return lines
    .filter(({ text }) => text.length > maxColumns && /\S\s+\S+\s+\S/.test(text))
    .map(({ text, line }) => ({
      line,
      message: `${text.length} columns, ${maxColumns} are allowed`,
    }));
}

function inOrder(problems: readonly ProseProblem[]): readonly ProseProblem[] {
  return [...problems].sort((one, other) => one.line - other.line);
}
