// Finds SQL in source files. Prose such as "the dialog from messages" is not a statement: only
// string literals count, and only those with a second word of SQL.

import ts from 'typescript-5';

const sqlWord = /\b(?:select|where|join|set|values|returning|using|order by|limit)\b/;

/**
 * Whether a string or template literal of `source` matches `statement`. The parts of a template
 * literal are joined, with each expression replaced by a blank.
 */
export function hasSql(source: string, statement: RegExp): boolean {
  // Most files do not match anywhere, and parsing is the expensive part.
  if (!statement.test(source)) return false;
  return literalsOf(source).some((text) => statement.test(text) && sqlWord.test(text));
}

function literalsOf(source: string): readonly string[] {
  const literals: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isStringLiteralLike(node)) literals.push(node.text);
    if (ts.isTemplateExpression(node)) {
      const parts = [node.head, ...node.templateSpans.map(({ literal }) => literal)];
      literals.push(parts.map(({ text }) => text).join(' '));
    }
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile('source.ts', source, ts.ScriptTarget.Latest));
  return literals;
}
