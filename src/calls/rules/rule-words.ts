// The calling rules by name, as events, notifications and lists show them.

/** In the order in which a call is checked (`src/rules/decide.ts`). */
export const ruleNames = ['suppressed', 'hours', 'attempts', 'rest', 'abandoned-rate'] as const;
export type RuleName = (typeof ruleNames)[number];
