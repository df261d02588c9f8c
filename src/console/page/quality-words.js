// Says how a call sounded, and what each figure means for the people who talked.

/** Shares of listeners by MOS (G.107, annex B). */
const opinions = [
  [4.03, 'good', 'Good', 'nearly everybody is content with such a line'],
  [3.6, 'wait', 'Fair', 'some people are not content with such a line'],
  [3.1, 'bad', 'Poor', 'many people are not content with such a line'],
  [0, 'bad', 'Bad', 'hardly anybody is content with such a line'],
];

/** The first limit that a figure doesn't exceed says what the figure means. */
const losses = [
  [0.2, 'nothing is missing that anybody hears'],
  [1, 'hardly anybody hears it'],
  [5, 'syllables are missing'],
  [100, 'words are missing'],
];
const jitters = [
  [20, 'the gateway’s buffer evens it out'],
  [60, 'some packets come too late to be heard'],
  [Number.POSITIVE_INFINITY, 'many packets come too late to be heard'],
];
/** Twice the one-way delays of G.114. */
const roundTrips = [
  [300, 'nobody notices it'],
  [800, 'people begin to talk at the same time'],
  [Number.POSITIVE_INFINITY, 'a conversation is hard'],
];

const meaningOf = (limits, value) => limits.find(([most]) => value <= most)?.[1];
const percent = (value) => `${value} %`;

/**
 * @param quality as in the API's `quality`
 * @returns lines as `{ name, value, meaning, tone }`. The first one sums up the others
 */
export function qualityLines({ mos, lossPercent, concealedMs, jitterMs, roundTripMs, remote }) {
  const [, tone, word, opinion] = opinions.find(([least]) => mos >= least) ?? opinions.at(-1);
  const concealed = concealedMs > 0 ? `, ${concealedMs} ms of sound made up or silent` : '';
  return [
    { name: 'Line', value: `${word}: MOS ${mos} of 4.5`, meaning: opinion, tone },
    {
      name: 'Packets lost from the far end',
      value: `${percent(lossPercent)}${concealed}`,
      meaning: meaningOf(losses, lossPercent),
    },
    { name: 'Jitter', value: `${jitterMs} ms`, meaning: meaningOf(jitters, jitterMs) },
    roundTripMs === undefined
      ? { name: 'Round trip', value: 'unknown', meaning: 'the far end sends no reports (RTCP)' }
      : {
          name: 'Round trip',
          value: `${roundTripMs} ms`,
          meaning: meaningOf(roundTrips, roundTripMs),
        },
    remote === undefined
      ? {
          name: 'Packets lost to the far end',
          value: 'unknown',
          meaning: 'the far end sends no reports (RTCP)',
        }
      : {
          name: 'Packets lost to the far end',
          value: `${percent(remote.lossPercent)}, jitter ${remote.jitterMs} ms`,
          meaning: meaningOf(losses, remote.lossPercent),
        },
  ];
}
