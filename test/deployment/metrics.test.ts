// Prometheus rules, their runbook and the Grafana dashboard: checks that /metrics has every metric
// and label that they use, and that each alert has a section in the runbook and a test that makes
// it fire.

import { beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { createMetrics } from '../../src/http/metrics.ts';
import { factsOfServers } from '../servers/facts.ts';
import { alertRules } from '../support/alert-rules.ts';
import { readCompose, textOf } from './compose.ts';

type Panel = {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number };
  readonly datasource?: { readonly uid: string };
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
};

const rules = alertRules();
const { panels } = JSON.parse(textOf('.docker/grafana-dashboard.json')) as {
  readonly panels: readonly Panel[];
};
const charts = panels.filter(({ type }) => type !== 'row');
const queries: readonly (readonly [where: string, expr: string])[] = [
  ...rules.map(({ alert, expr }) => [alert, expr] as const),
  ...charts.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => [title, expr] as const)),
];

/** The labels of each metric, with those that Prometheus adds to all metrics. */
const metrics = new Map<string, Set<string>>();
const added = ['instance', 'job'];

beforeAll(async () => {
  const gateway = { trunk: 'carrier', gateway: 'sip.example', isUp: true };
  const streams = { open: 0, framesSent: 0, framesDropped: 0, bytesReceived: 0, bytesPlayed: 0 };
  const more = { bytesDropped: 0, underruns: 0, reconnects: 0, messagesIgnored: 0, heldBytes: 0 };
  const packets = {
    packetsReceived: 0,
    packetsDiscarded: 0,
    packetsForged: 0,
    packetsLate: 0,
    packetsSent: 0,
  };
  const sendLateness = { packetsByMs: [], sumMs: 0 };
  const late = { packetsUnsent: 0, ticksLate: 0, framesLate: 0, framesUnheard: 0, sendLateness };
  const all = createMetrics({
    gateways: () => [gateway],
    media: () => Promise.resolve({ ...packets, ...late, streams: { ...streams, ...more } }),
    servers: () => factsOfServers(),
    recordings: () => ({
      ...{ stored: 0, failed: new Map(), waiting: 0, oldestWaitingS: 0 },
      ...{ spoolBytes: 0, isStoreUp: true, undeleted: 0 },
    }),
  });
  // A metric shows its labels only after something was counted.
  all.httpRequest('POST', '/dialout', 200, 0.1);
  all.callAccepted();
  all.callEnded({ outcome: 'completed' }, { trunk: 'carrier' });
  all.notificationAttempt('delivered', 0.1);
  all.endpointsFailing(new Map([['app-1', 1]]));
  const text = await all.render();
  for (const [, name = '', labels = ''] of text.matchAll(/^([a-z]\w*)(?:\{(.*)\})? /gm)) {
    const known = metrics.get(name) ?? new Set(added);
    for (const [, label = ''] of labels.matchAll(/(\w+)="/g)) known.add(label);
    metrics.set(name, known);
  }
  metrics.set('up', new Set(added));
});

/** Returns the metrics in an expression, each with the labels of its selector. */
function selectorsOf(expr: string): readonly (readonly [string, readonly string[]])[] {
  const found = expr.matchAll(/\b((?:offhook|nodejs|process)_\w+|up)\b(?:\{([^}]*)\})?/g);
  return [...found].map(([, name = '', selector = '']) => [
    name,
    [...selector.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)].map(([, label = '']) => label),
  ]);
}

describe.each(queries)('%s', (_where, expr) => {
  test('uses existing metrics and their labels', () => {
    const selectors = selectorsOf(expr);

    expect(selectors.length).toBeGreaterThan(0);
    for (const [name, labels] of selectors) {
      expect([...metrics.keys()], expr).toContain(name);
      for (const label of labels) expect(metrics.get(name), expr).toContain(label);
    }
  });

  test('groups by labels of its metrics', () => {
    const had = new Set(selectorsOf(expr).flatMap(([name]) => [...(metrics.get(name) ?? [])]));
    for (const [, list = ''] of expr.matchAll(/\b(?:by|ignoring|on) \(([^)]*)\)/g)) {
      for (const label of list.split(',')) expect(had, expr).toContain(label.trim());
    }
  });

  test('has balanced brackets', () => {
    for (const [open, close] of ['()', '{}', '[]'].map((pair) => pair.split(''))) {
      const count = (sign = '') => expr.split(sign).length;
      expect(count(open), expr).toBe(count(close));
    }
  });
});

describe('the alerts', () => {
  test('have unique names, a severity and a summary', () => {
    expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
    for (const { labels, annotations } of rules) {
      expect(['critical', 'warning']).toContain(labels['severity']);
      expect(annotations['summary']).toMatch(/\w/);
    }
  });

  test('use in their texts only labels that their expression keeps', () => {
    for (const { expr, annotations } of rules) {
      const texts = Object.values(annotations).join(' ');
      for (const [, label = ''] of texts.matchAll(/\$labels\.(\w+)/g)) {
        const kept = /\bby \(([^)]*)\)/.exec(expr)?.[1]?.split(',') ?? added;
        expect(
          kept.map((name) => name.trim()),
          expr,
        ).toContain(label);
      }
    }
  });
});

describe('the runbook', () => {
  const sections = textOf('sip-config/runbook.md')
    .split(/^### /m)
    .slice(1)
    .map((section) => [section.slice(0, section.indexOf('\n')), section] as const);

  test('has a section for each alert, and no other, with links from the alert and the list', () => {
    const byName = (one: string, other: string) => (one < other ? -1 : 1);

    expect(sections.map(([name]) => name).sort(byName)).toEqual(
      rules.map(({ alert }) => alert).sort(byName),
    );
    for (const { alert, annotations, labels } of rules) {
      const anchor = alert.toLowerCase();
      expect(annotations['runbook_url']).toBe(`sip-config/runbook.md#${anchor}`);
      const row = `| [${alert}](#${anchor}) | ${labels['severity']} |`;
      expect(textOf('sip-config/runbook.md')).toContain(row);
    }
  });

  test.each(sections)(
    '%s says what it means, what to look at, and what to do',
    (_name, section) => {
      expect(section).toMatch(/\*\*Means:\*\* \w/);
      expect(section).toMatch(/\*\*Look at\*\* /);
      expect(section).toMatch(/\*\*(Do:|do)\*\* /);
    },
  );

  test('names metrics that exist', () => {
    const named = textOf('sip-config/runbook.md').match(/\b(offhook|nodejs|process)_\w+/g) ?? [];

    expect(named.length).toBeGreaterThan(5);
    for (const name of named) expect([...metrics.keys()]).toContain(name);
  });
});

describe('the tests of the rules, which promtool runs in `npm run test:metrics`', () => {
  const { tests } = parse(textOf('test/release/metrics/prometheus-rules.yml')) as {
    readonly tests: readonly {
      readonly alert_rule_test: readonly {
        readonly alertname: string;
        readonly exp_alerts?: readonly unknown[];
      }[];
    }[];
  };
  const cases = tests.flatMap((each) => each.alert_rule_test);

  test.each(rules.map(({ alert }) => alert))('make %s fire', (alert) => {
    const its = cases.filter(({ alertname }) => alertname === alert);

    expect(its.filter(({ exp_alerts: alerts }) => alerts?.length === 1)).not.toEqual([]);
  });

  test('are about alerts that exist', () => {
    const known = rules.map(({ alert }) => alert);
    for (const { alertname } of cases) expect(known).toContain(alertname);
  });
});

describe('the dashboard', () => {
  test('uses the configured data source', () => {
    const { datasources } = parse(textOf('.docker/grafana-datasources.yml')) as {
      readonly datasources: readonly { readonly uid: string; readonly url: string }[];
    };
    const [source] = datasources;

    for (const { datasource } of charts) expect(datasource?.uid).toBe(source?.uid);
    const listen = readCompose().services['prometheus']?.command?.join(' ');
    expect(listen).toContain(`--web.listen-address=${new URL(source?.url ?? '').host}`);
  });

  test('has panels that do not overlap', () => {
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const places = charts.map(({ gridPos: { x, y } }) => `${x},${y}`);
    expect(new Set(places).size).toBe(places.length);
    for (const { gridPos } of charts) expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24);
  });
});

test('Prometheus scrapes every gateway of docker-compose.yml', () => {
  const { scrape_configs: jobs } = parse(textOf('.docker/prometheus.yml')) as {
    readonly scrape_configs: readonly {
      readonly job_name: string;
      readonly static_configs: readonly { readonly targets: readonly string[] }[];
    }[];
  };
  const ports = Object.values(readCompose().services).flatMap(
    ({ environment }) => environment?.['HTTP_PORT'] ?? [],
  );

  expect(jobs.map(({ job_name: name }) => name)).toEqual(['offhook']);
  expect(jobs[0]?.static_configs[0]?.targets).toEqual(ports.map((port) => `127.0.0.1:${port}`));
});
