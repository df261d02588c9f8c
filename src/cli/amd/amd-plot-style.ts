// How the page of `offhook amd --plot` looks and reacts. Plain CSS and JavaScript of any browser of these years.

export const pageStyle = `
:root { color-scheme: light dark; --ink: #1c2230; --dim: #667085; --paper: #f5f6f8; --card: #fff; --line: #e3e6ec;
  --wave: #8a94a6; --speech: #3b82f6; --word: #1e3a8a; --tone: #9333ea; --human: #15803d; --machine: #c2410c;
  --grey: #64748b; --bad: #b91c1c; --shade: #3b82f614; --shade-beep: #9333ea1f; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --dim: #98a2b3; --paper: #0f1319; --card: #171c25; --line: #2a313d;
  --wave: #667085; --speech: #60a5fa; --word: #dbeafe; --tone: #c084fc; --human: #4ade80; --machine: #fb923c;
  --grey: #94a3b8; --bad: #f87171; --shade: #60a5fa1c; --shade-beep: #c084fc2b; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 24px 28px 60px; max-width: 1280px; background: var(--paper); color: var(--ink);
  font: 14px/1.45 system-ui, -apple-system, "Segoe UI", sans-serif; }
h1 { margin: 0; font-size: 24px; letter-spacing: -0.01em; }
header p { margin: 2px 0 18px; color: var(--dim); }
.figures { overflow-x: auto; display: flex; flex-wrap: wrap; gap: 16px; margin-bottom: 18px; }
table { background: var(--card); border: 1px solid var(--line); border-radius: 10px; border-spacing: 0; padding: 8px 6px; font-size: 13px;
  font-variant-numeric: tabular-nums; }
th, td { padding: 3px 9px; text-align: right; white-space: nowrap; font-weight: 400; }
th:first-child { text-align: left; color: var(--dim); }
.confusion { align-self: flex-start; }
.confusion tr:first-child th { color: var(--dim); border-bottom: 1px solid var(--line); }
.confusion td { border-radius: 6px; font-weight: 600; }
.confusion td.share { font-weight: 400; color: var(--dim); }
.confusion .hit { color: var(--human); }
.confusion .miss { color: var(--bad); }
.confusion .zero { color: var(--line); }
.measures td { text-align: left; }
nav { position: sticky; top: 0; z-index: 2; display: flex; flex-wrap: wrap; gap: 6px; padding: 10px 0;
  background: var(--paper); }
button, input { font: inherit; color: inherit; background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  padding: 4px 12px; }
button { cursor: pointer; }
button b { font-weight: 600; color: var(--dim); }
button[aria-pressed="true"] { background: var(--ink); color: var(--card); border-color: var(--ink); }
button[aria-pressed="true"] b { color: inherit; }
button:focus-visible, input:focus-visible { outline: 2px solid var(--speech); outline-offset: 1px; }
input { margin-left: auto; width: 200px; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 2px 0 14px; color: var(--dim); font-size: 12.5px; }
.legend span { display: inline-flex; align-items: center; gap: 6px; }
.key { width: 18px; height: 10px; border-radius: 2px; }
.key.speech { background: var(--speech); } .key.tone { background: var(--tone); }
.key.word { width: 2px; height: 14px; background: var(--word); }
.key.spoken { background: var(--speech); opacity: .45; } .key.beeped { background: var(--tone); opacity: .5; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 12px 16px 6px;
  margin-bottom: 12px; overflow-x: auto; content-visibility: auto; contain-intrinsic-size: auto 230px; }
.card.wrong { border-left: 4px solid var(--bad); padding-left: 13px; }
h2 { margin: 0; font-size: 14px; font-weight: 600; overflow-wrap: anywhere; }
h2 small { color: var(--dim); font-weight: 400; font-size: 13px; }
.card p { display: flex; flex-wrap: wrap; align-items: center; gap: 4px 12px; margin: 4px 0 10px; font-size: 13px; }
.chip { padding: 0 9px; border-radius: 20px; color: var(--card); background: var(--grey); font-weight: 600; font-size: 12px; }
.chip.human { background: var(--human); } .chip.machine { background: var(--machine); }
.chip.error { background: var(--bad); }
.good { color: var(--human); } .bad { color: var(--bad); } .fact { color: var(--dim); }
svg { display: block; width: 100%; min-width: 720px; height: auto; overflow: visible; font: 11px system-ui, sans-serif; }
.grid { stroke: var(--line); } .tick { fill: var(--dim); text-anchor: middle; font-size: 10.5px; }
.lane { fill: var(--dim); } .wave { fill: var(--wave); }
.speech { fill: var(--speech); } .tone { fill: var(--tone); } .word { stroke: var(--word); stroke-width: 1.6; fill: none; }
.spoken { fill: var(--speech); opacity: .45; } .beeped { fill: var(--tone); opacity: .5; }
.shade { fill: var(--shade); } .shade.beeping { fill: var(--shade-beep); }
.event { color: var(--grey); cursor: help; outline: none; }
.event path { stroke: currentColor; stroke-width: 1.3; fill: none; }
.event rect { fill: currentColor; } .event text { fill: var(--card); font-weight: 600; }
.event:hover path, .event:focus path { stroke-width: 3; }
.amd_human_detected { color: var(--human); } .amd_machine_detected { color: var(--machine); }
.amd_tone_detected { color: var(--tone); } .amd_error { color: var(--bad); }
.hair { stroke: var(--dim); stroke-dasharray: 2 3; visibility: hidden; pointer-events: none; }
#tip { position: fixed; z-index: 3; pointer-events: none; white-space: pre-line; max-width: 420px; padding: 7px 11px;
  border-radius: 8px; background: var(--ink); color: var(--card); font-size: 12.5px; box-shadow: 0 6px 20px #0004; }
#tip::first-line { font-weight: 600; }
#none { color: var(--dim); }
`;

export const pageScript = `
const tip = document.getElementById('tip');
const cards = [...document.querySelectorAll('.card')];
const buttons = [...document.querySelectorAll('button[data-filter]')];
const search = document.querySelector('input');
let filter = 'all';
function choose() {
  const name = search.value.trim().toLowerCase();
  let shown = 0;
  for (const card of cards) {
    const { group, wrong } = card.dataset;
    const fits = filter === 'all' || group === filter || (filter === 'wrong' && wrong === 'true');
    card.hidden = !fits || !card.dataset.name.includes(name);
    if (!card.hidden) shown += 1;
  }
  document.getElementById('none').hidden = shown > 0;
}
for (const button of buttons) {
  button.addEventListener('click', () => {
    filter = button.dataset.filter;
    for (const other of buttons) other.setAttribute('aria-pressed', String(other === button));
    choose();
  });
}
search.addEventListener('input', choose);
function place(x, y) {
  tip.style.left = Math.max(8, Math.min(x + 14, innerWidth - tip.offsetWidth - 8)) + 'px';
  tip.style.top = (y + 18 + tip.offsetHeight > innerHeight ? y - tip.offsetHeight - 10 : y + 18) + 'px';
}
function show(text, x, y) {
  tip.textContent = text;
  tip.hidden = text === '';
  if (text !== '') place(x, y);
}
document.addEventListener('mousemove', (event) => {
  const svg = event.target.closest('svg');
  for (const hair of document.querySelectorAll('.hair[style]')) hair.removeAttribute('style');
  if (svg === null) return show('', 0, 0);
  const box = svg.getBoundingClientRect();
  const x = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
  const { left, right, end } = svg.dataset;
  const ms = ((x - left) / (right - left)) * end;
  const marked = event.target.closest('[data-tip]');
  if (ms < 0 && marked === null) return show('', 0, 0);
  const hair = svg.querySelector('.hair');
  hair.setAttribute('x1', x);
  hair.setAttribute('x2', x);
  hair.style.visibility = 'visible';
  show(marked === null ? (ms / 1000).toFixed(2) + ' s' : marked.dataset.tip, event.clientX, event.clientY);
});
document.addEventListener('focusin', (event) => {
  const marked = event.target.closest('[data-tip]');
  if (marked === null) return show('', 0, 0);
  const box = marked.getBoundingClientRect();
  show(marked.dataset.tip, box.left, box.top + 10);
});
`;
