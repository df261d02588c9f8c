// The shares of a trunk's or a caller ID's calls that operators watch, as cells of a table.

import { html } from './dom.js';
import { change, shareOf } from './hours.js';

export const shares = [
  { name: 'Answer rate', of: ({ answered, accepted }) => shareOf(answered, accepted) },
  { name: 'Short calls', of: ({ short, answered }) => shareOf(short, answered) },
  { name: 'Blocked', of: ({ blocked, accepted }) => shareOf(blocked, accepted) },
];

/** One cell for each share, with its difference to the share of the counts before, if any. */
export function ShareCells({ counts, before }) {
  return shares.map(({ name, of }) => {
    const [value, earlier] = [of(counts), before && of(before)];
    const difference = change(value, earlier, true);
    const isChanged = difference !== undefined && difference !== 'no change';
    return html`<td key=${name} class="number" data-name=${name}><span>${exact(value)}${isChanged && html` <span class="faint" title=${`A week before: ${exact(earlier)}`}>${difference}</span>`}</span></td>`;
  });
}

export const shareHeads = () =>
  shares.map(({ name }) => html`<th key=${name} scope="col" class="number">${name}</th>`);

/** One block in a thousand calls matters. */
const exact = (share) => (share === undefined ? '–' : `${(share * 100).toFixed(1)} %`);
