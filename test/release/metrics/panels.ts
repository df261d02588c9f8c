// Reads the queries of the dashboard's panels, with their variables filled in as Grafana does.

import { readFile } from 'node:fs/promises';
import type { Prometheus } from './prometheus.ts';

type Dashboard = {
  readonly templating: {
    readonly list: readonly { readonly name: string; readonly query: string }[];
  };
  readonly panels: readonly {
    readonly title: string;
    readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
  }[];
};
export type Query = { readonly panel: string; readonly legend: string; readonly expr: string };

export async function readQueries(
  prometheus: Prometheus,
  scrapeEveryS: number,
): Promise<readonly Query[]> {
  const text = await readFile(
    new URL('../../../.docker/grafana-dashboard.json', import.meta.url),
    'utf8',
  );
  const { templating, panels } = JSON.parse(text) as Dashboard;
  // The interval spans at least four scrapes, so that one lost scrape leaves no gap.
  const variables = new Map([
    ['__rate_interval', `${4 * scrapeEveryS}s`],
    ['__range', '1h'],
  ]);
  for (const { name, query } of templating.list) {
    const [, metric = '', label = ''] = /^label_values\((\w+), (\w+)\)$/.exec(query) ?? [];
    variables.set(name, allOf(await prometheus.labelValues(metric, label)));
  }
  const fillIn = (expr: string): string =>
    expr.replace(/\$(\w+)/g, (_, name: string) => {
      const value = variables.get(name);
      if (value === undefined) throw new Error(`the dashboard uses the unknown variable ${name}`);
      return value;
    });
  return panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr, legendFormat }) => ({
      ...{ panel: title, legend: legendFormat, expr: fillIn(expr) },
    })),
  );
}

/**
 * Returns the value of `All` for a variable that allows several values: an alternation for a
 * regular expression inside a string.
 */
function allOf(values: readonly string[]): string {
  const escaped = values.map((value) => value.replace(/[\\^$*+?.()|[\]{}]/g, '\\\\$&'));
  return `(${escaped.join('|')})`;
}
