// A trunk's rules for the caller ID and the number, for carriers that expect them in a form that
// `numberFormat` doesn't have.

import { z } from 'zod';
import { isSipUser } from '../../calls/target/parse-target.ts';
import { anchored, checkPattern, maxValueLength } from './rewrite-pattern.ts';

/** A rule applies to a value that matches its pattern as a whole. */
export type RewriteRule = {
  readonly pattern: RegExp;
  /** `$1` to `$9` stand for the pattern's groups, and `$$` for a dollar sign. */
  readonly replace: string;
};

/** The first rule that matches applies. */
export type RewriteRules = {
  readonly caller: readonly RewriteRule[];
  readonly number: readonly RewriteRule[];
};

/** A plan has one rule for each region that a carrier treats differently, not one per number. */
const maxRules = 64;

const ruleSchema = z
  .strictObject({ match: z.string().min(1).max(256), replace: z.string().min(1).max(128) })
  .transform(({ match, replace }, context) => {
    const checked = checkPattern(match);
    const issue = (field: string, message: string) =>
      context.addIssue({ code: 'custom', path: [field], message });
    if (!checked.ok) {
      issue('match', checked.message);
      return z.NEVER;
    }
    const problem = replacementProblem(replace, checked.groups);
    if (problem !== undefined) {
      issue('replace', problem);
      return z.NEVER;
    }
    return { pattern: new RegExp(anchored(match), 'u'), replace };
  });

const rulesSchema = z.array(ruleSchema).max(maxRules).default([]);

export const rewriteSchema = z.strictObject({ caller: rulesSchema, number: rulesSchema });

function replacementProblem(replace: string, groups: number): string | undefined {
  const literal = replace.replaceAll(/\$[1-9]|\$\$/g, '');
  if (literal.includes('$')) return 'may only contain $1 to $9, and $$ for a dollar sign';
  const named = [...replace.replaceAll('$$', '').matchAll(/\$([1-9])/g)].map(([, digit]) => digit);
  const missing = named.find((digit) => Number(digit) > groups);
  if (missing !== undefined) return `contains $${missing}, but match has ${groups} groups`;
  if (literal === '' || isSipUser(literal)) return undefined;
  return 'may only contain characters of the user part of a SIP URI; # is %23';
}

export type Rewritten =
  /** `user` is undefined if no rule matches. */
  | { readonly ok: true; readonly user?: string }
  /** The result of the rule is not the user part of a SIP URI. */
  | { readonly ok: false };

/** Applies the first rule that matches the whole value. */
export function rewrite(value: string, rules: readonly RewriteRule[] = []): Rewritten {
  if (value.length > maxValueLength) return { ok: true };
  const rule = rules.find(({ pattern }) => pattern.test(value));
  if (rule === undefined) return { ok: true };
  const user = value.replace(rule.pattern, rule.replace);
  return isSipUser(user) ? { ok: true, user } : { ok: false };
}
