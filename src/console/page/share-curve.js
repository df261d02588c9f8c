// Draws the share of abandoned calls over time, by both formulas, as one picture.

import { html } from './dom.js';
import { fullTime } from './format.js';

const width = 1_000;
const height = 160;
/** Keeps lines at the very top and bottom whole. */
const strokeHeight = 2;

/**
 * `steps` has one level for each window, and `line` one point in the middle of each. Both are
 * `{ name, windows }`.
 */
export function ShareCurve({ steps, line }) {
  const windows = [...steps.windows, ...line.windows];
  if (windows.length === 0) return null;
  const fromMs = Math.min(...windows.map(({ from }) => Date.parse(from)));
  const untilMs = Math.max(...windows.map(({ until }) => endMs(until)));
  const top = topOf(Math.max(...windows.map(({ percent }) => percent)));
  const x = (ms) => ((ms - fromMs) / Math.max(1, untilMs - fromMs)) * width;
  const y = (percent) => height - strokeHeight - (percent / top) * (height - 2 * strokeHeight);
  const levels = steps.windows.flatMap(({ from, until, percent }) => [
    `${x(Date.parse(from))},${y(percent)}`,
    `${x(endMs(until))},${y(percent)}`,
  ]);
  const points = line.windows.map(
    ({ from, until, percent }) => `${x((Date.parse(from) + endMs(until)) / 2)},${y(percent)}`,
  );
  return html`<figure class="wave curve">
    <div class="legend" aria-hidden="true"><span class="steps">${steps.name}</span><span class="line">${line.name}</span><span class="faint">0 to ${top} %</span></div>
    <svg viewBox="0 0 ${width} ${height}" preserveAspectRatio="none" role="img" aria-label=${describe(steps, line)}>
      <line class="most" x1="0" x2=${width} y1=${y(3)} y2=${y(3)} />
      <polyline class="steps" points=${levels.join(' ')} />
      <polyline class="line" points=${widened(points).join(' ')} />
    </svg>
    <figcaption class="faint">${fullTime(new Date(fromMs).toISOString())} to ${fullTime(new Date(untilMs).toISOString())}. The dashed line is at 3 %.</figcaption>
  </figure>`;
}

/** The current window ends now. */
const endMs = (until) => Math.min(Date.parse(until), Date.now());

/** Leaves room above the 3 % of the FTC's rule, which is always in the picture. */
const topOf = (percent) => [4, 6, 10, 20, 40, 100].find((top) => percent <= top) ?? 100;

/** A line needs two points: a single one becomes a short stroke. */
function widened(points) {
  if (points.length !== 1) return points;
  const [x, y] = points[0].split(',');
  return [`${x - 8},${y}`, `${Number(x) + 8},${y}`];
}

function describe(...series) {
  return series
    .map(({ name, windows }) => {
      const shares = windows.map(({ percent }) => `${percent.toFixed(2)} %`);
      return `${name}: ${shares.length === 0 ? 'nothing' : shares.join(', ')}`;
    })
    .join('. ');
}
