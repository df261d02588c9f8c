// Shows detection events, both as a list with their evidence and as marks in the waveform.

import { amdReasonWords, transcriptionWords, wordOf } from './code-words.js';
import { Coded } from './coded.js';
import { html } from './dom.js';
import { amdWord, duration } from './format.js';

const evidenceNames = {
  elapsedMs: ['after', (ms) => duration(ms)],
  words: ['words', String],
  confidence: ['confidence', (value) => `${Math.round(value * 100)} %`],
  speechMs: ['speech', (ms) => duration(ms)],
  spanMs: ['with pauses', (ms) => duration(ms)],
  pauseMs: ['silence before', (ms) => duration(ms)],
  unheardMs: ['not heard', (ms) => duration(ms)],
  round: ['round', String],
  tone: ['tone', ({ hz, ms }) => `${Math.round(hz)} Hz, ${Math.round(ms)} ms`],
  corrects: ['corrects', amdWord],
  transcript: ['heard', (text) => `“${text}”`],
  transcription: [
    'speech-to-text',
    (code) => html`<${Coded} text=${wordOf(transcriptionWords, code)} code=${code} />`,
  ],
};

export function Verdicts({ events }) {
  return html`<ul class="verdicts">
    ${events.map(
      ({ event, reason, ...evidence }) => html`<li>
        <strong>${amdWord(event)}</strong> <span class="reason"><${Coded} text=${amdReasonWords({ event, reason, ...evidence })} code=${reason} /></span>
        <dl>${Object.entries(evidence).map(([name, value]) => {
          const [label, write] = evidenceNames[name] ?? [name, (other) => JSON.stringify(other)];
          return html`<div><dt>${label}</dt><dd>${write(value)}</dd></div>`;
        })}</dl>
      </li>`,
    )}
  </ul>`;
}

/** @returns undefined for the end of detection, because it has no mark */
export function verdictMark({ event, elapsedMs, confidence }) {
  if (event === 'amd_stopped') return undefined;
  const sure = confidence === undefined ? '' : ` ${Math.round(confidence * 100)} %`;
  return { atMs: elapsedMs, label: `${amdWord(event)}${sure}`, tone: 'verdict' };
}
