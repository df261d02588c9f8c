// A small chart of hours or days: their values, and those that they are compared with. uPlot draws
// it. The page loads it with the first chart, after the page's words are there. A chart is a
// picture, so the page also has its values as a table.

import { signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { html } from './dom.js';

/** The hour or day at which the pointer is, in all charts of the page. */
export const hoveredHour = signal(undefined);

const height = 96;
/** In a narrower chart, the names of the hours would touch each other. */
const narrowPixels = 220;
const font = '11px system-ui, "Liberation Sans", sans-serif';

/**
 * `values` and `before` have a value for each of `names`, or undefined. `isShare`: they are from 0
 * to 1. `isClose`: the scale ends near the largest one. `label` says in a sentence what the picture
 * shows.
 */
export function HourChart({ values, before = [], names, isShare = false, isClose = false, label }) {
  const place = useRef(null);
  const chart = useRef(undefined);
  const data = useRef(undefined);
  data.current = [
    names.map((_, index) => index),
    names.map((_, index) => before[index] ?? null),
    names.map((_, index) => values[index] ?? null),
  ];
  useEffect(
    () => keepDrawn(place.current, chart, data, { names, isShare, isClose }),
    [names.join()],
  );
  useEffect(() => chart.current?.setData(data.current));
  return html`<div class="hours-chart" role="img" aria-label=${label} ref=${place}></div>`;
}

/** Draws the chart, and draws it anew when its width or the colours change. */
function keepDrawn(element, chart, data, options) {
  let isGone = false;
  let Plot;
  const draw = () => {
    if (Plot === undefined) return;
    chart.current?.destroy();
    chart.current = new Plot(settings(Plot, element, options), data.current, element);
  };
  const resize = new ResizeObserver(() => {
    const width = element.clientWidth;
    if (chart.current && chart.current.width !== width) chart.current.setSize({ width, height });
  });
  const colours = matchMedia('(prefers-color-scheme: dark)');
  colours.addEventListener('change', draw);
  resize.observe(element);
  // Without the library the page still has its numbers.
  const loaded = (module) => {
    Plot = module.default;
    if (!isGone) draw();
  };
  import('uplot').then(loaded, () => undefined);
  return () => {
    isGone = true;
    resize.disconnect();
    colours.removeEventListener('change', draw);
    chart.current?.destroy();
    hoveredHour.value = undefined;
  };
}

function settings(Plot, element, { names, isShare, isClose }) {
  // A canvas doesn't know the page's colours. The browser resolves those of these properties.
  const { color: accent, caretColor: faint, borderTopColor: line } = getComputedStyle(element);
  const axis = { stroke: faint, font, ticks: { show: false } };
  return {
    width: element.clientWidth,
    height,
    padding: [8, 6, 0, 0],
    legend: { show: false },
    cursor: {
      y: false,
      drag: { x: false, y: false, setScale: false },
      points: { show: false },
      sync: { key: 'hours' },
    },
    hooks: {
      setCursor: [
        ({ cursor: { idx } }) => {
          hoveredHour.value = idx ?? undefined;
        },
      ],
    },
    scales: {
      x: { time: false, range: [-0.6, names.length - 0.4] },
      y: {
        range: (_chart, _least, most) => [0, isShare ? shareTopOf(most, isClose) : topOf(most)],
      },
    },
    axes: [
      {
        ...{ ...axis, size: 20, gap: 2, grid: { show: false } },
        splits: ({ width }) => everyFew(names, width < narrowPixels ? 12 : 6),
        values: (_chart, splits) => splits.map((index) => names[index]),
      },
      {
        ...{ ...axis, size: 40, gap: 4, grid: { stroke: line, width: 1 } },
        splits: (_chart, _axis, _least, most) =>
          most === 1 && !isShare ? [0, 1] : [0, most / 2, most],
        values: (_chart, splits) => splits.map((value) => labelOf(value, isShare)),
      },
    ],
    series: [
      {},
      {
        ...{ stroke: faint, width: 1.5, points: { show: false } },
        ...(isShare ? { spanGaps: true } : {}),
      },
      isShare ? lineOf(accent) : barsOf(Plot, accent),
    ],
  };
}

const lineOf = (stroke) => ({
  stroke,
  width: 2,
  spanGaps: true,
  points: { show: true, size: 4, fill: stroke },
});

const barsOf = (Plot, fill) => ({
  ...{ fill, stroke: fill, width: 0, points: { show: false } },
  paths: Plot.paths.bars({ size: [0.7, 24], radius: 0.15 }),
});

const everyFew = (names, step) => names.flatMap((_, index) => (index % step === 0 ? [index] : []));

const shareTopOf = (most, isClose) =>
  (isClose && [0.02, 0.04, 0.1, 0.2, 0.5].find((top) => top >= most)) || 1;

/** A round number at or above the largest value. */
function topOf(most) {
  if (!(most > 1)) return 1;
  const step = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 4, 6, 8, 10].map((times) => times * step).find((top) => top >= most);
}

/** The base line needs no label, and the first hour's is there. */
function labelOf(value, isShare) {
  if (value === 0) return '';
  if (isShare) return `${Math.round(value * 100)} %`;
  return value >= 10_000 ? `${Math.round(value / 1_000)}k` : String(value);
}
