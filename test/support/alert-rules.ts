// The shipped alert rules, and what a gateway's metrics make of those that compare one metric with
// a number. `npm run test:metrics` evaluates all of them with Prometheus.

import { readFileSync } from 'node:fs';
import { parse } from 'yaml';

export type AlertRule = {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
};

export function alertRules(): readonly AlertRule[] {
  const path = new URL('../../.docker/prometheus-rules.yml', import.meta.url);
  const { groups } = parse(readFileSync(path, 'utf8')) as {
    readonly groups: readonly { readonly rules: readonly AlertRule[] }[];
  };
  return groups.flatMap(({ rules }) => rules);
}

const comparisons: Readonly<Record<string, (value: number, limit: number) => boolean>> = {
  '==': (value, limit) => value === limit,
  '>': (value, limit) => value > limit,
};

/** Says whether the condition of an alert holds in the text of `/metrics`, without its `for`. */
export function holds(alert: string, metrics: string): boolean {
  const expr = alertRules().find((rule) => rule.alert === alert)?.expr ?? '';
  const [, name, operator = '', limit] = /^(\w+) (==|>) ([\d.]+)$/.exec(expr) ?? [];
  const compare = comparisons[operator];
  if (name === undefined || compare === undefined)
    throw new Error(`this test cannot evaluate ${alert}: ${expr}`);
  const sample = new RegExp(`^${name} (.+)$`, 'm').exec(metrics)?.[1];
  return sample !== undefined && compare(Number(sample), Number(limit));
}
