// The page for `offhook amd --plot`. It shows each recording the way the console shows a call, with
// filters for the verdict and the file name.

import { render } from 'preact';
import { useState } from 'preact/hooks';
import { html } from '../../../console/page/dom.js';
import { duration, plural } from '../../../console/page/format.js';
import { SoundPicture } from '../../../console/page/sound-picture.js';
import { Verdicts, verdictMark } from '../../../console/page/verdicts.js';

const recordings = JSON.parse(document.getElementById('data').textContent);
const isWrong = ({ faults }) => faults?.length > 0;
const filters = {
  all: () => true,
  ...(recordings.some(isWrong) ? { wrong: isWrong } : {}),
  ...Object.fromEntries(
    recordings.map(({ group }) => [group, (recording) => recording.group === group]),
  ),
};

function Page() {
  const [filter, setFilter] = useState('all');
  const [name, setName] = useState('');
  const shown = recordings
    .filter(filters[filter])
    .filter(({ file }) => file.toLowerCase().includes(name.trim().toLowerCase()));
  return html`<main>
    <h1>Who picked up?</h1>
    <p class="faint">${plural(recordings.length, 'recording')}, analysed by <code>offhook amd</code>.</p>
    <div class="bar">
      ${Object.entries(filters).map(
        ([title, fits]) =>
          html`<button type="button" class="toggle" aria-pressed=${title === filter} onClick=${() => setFilter(title)}>${title} ${recordings.filter(fits).length}</button>`,
      )}
      <span class="grow"></span>
      <input type="search" placeholder="file name" aria-label="file name" onInput=${({ target }) => setName(target.value)} />
    </div>
    ${shown.map((recording) => html`<${Recording} key=${recording.file} recording=${recording} />`)}
    ${shown.length === 0 && html`<p class="faint">No recording matches.</p>`}
  </main>`;
}

function Recording({ recording }) {
  const { file, verdict, faults, group, durationMs, peak, audio, events, lanes } = recording;
  const marks = events.flatMap((event) => verdictMark(event) ?? []);
  return html`<section class="recording">
    <h2>${file}</h2>
    <p><strong>${verdict}</strong> ${faults && html`<span class=${isWrong(recording) ? 'wrong' : 'right'}>${isWrong(recording) ? `✗ ${faults.join('; ')}` : `✓ ${group}`}</span>`} <span class="faint">${duration(durationMs)}, ${peak}</span></p>
    <${SoundPicture} audio=${audio} marks=${marks} lanes=${lanes} caption="Loudness. After the end of the recording: silence until detection stopped. Bands are speech or other sound." />
    <${Verdicts} events=${events} />
  </section>`;
}

render(html`<${Page} />`, document.getElementById('app'));
