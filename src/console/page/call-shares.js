// The shares of a trunk's or a caller ID's calls that operators watch, as cells of a table.

import { html } from './dom.js';
import { change, shareOf } from './hours.js';

/** Less of the first one is worse, and more of the others. */
export const shares = [
  {
    name: 'Answer rate',
    isGood: true,
    of: ({ answered, accepted }) => shareOf(answered, accepted),
  },
  { name: 'Short calls', of: ({ short, answered }) => shareOf(short, answered) },
  { name: 'Blocked', of: ({ blocked, accepted }) => shareOf(blocked, accepted) },
];

/** A share that is worse by as much stands out, if it is one of enough calls. */
const worseBy = 0.02;
const enoughCalls = 100;

/** One cell for each share, with its difference to the share of the counts before, if any. */
export function ShareCells({ counts, before }) {
  return shares.map(({ name, of, isGood }) => {
    const [value, earlier] = [of(counts), before && of(before)];
    const difference = change(value, earlier, true);
    const isChanged = difference !== undefined && difference !== 'no change';
    const isKnown = Math.min(counts.accepted, before?.accepted ?? 0) >= enoughCalls;
    const isWorse = isKnown && (value - earlier) * (isGood ? -1 : 1) > worseBy;
    return html`<td key=${name} class="number" data-name=${name}><span>${exact(value)}${isChanged && html` <span class=${isWorse ? 'worse' : 'faint'} title=${`A week before: ${exact(earlier)}`}>${difference}</span>`}</span></td>`;
  });
}

export const shareHeads = () =>
  shares.map(({ name }) => html`<th key=${name} scope="col" class="number">${name}</th>`);

/** One block in a thousand calls matters. */
const exact = (share) => (share === undefined ? '–' : `${(share * 100).toFixed(1)} %`);
