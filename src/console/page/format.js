// Formats times, durations and values for display.

const time = { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false };
const formats = {
  clock: time,
  day: { day: '2-digit', month: 'short' },
  date: { year: 'numeric', month: 'numeric', day: 'numeric' },
  full: { year: 'numeric', month: 'short', day: 'numeric', ...time },
};

/** Formats are costly to make, and a page needs few. */
const made = new Map();

function write(name, date, timeZone) {
  const key = `${name} ${timeZone}`;
  const format =
    made.get(key) ?? new Intl.DateTimeFormat(undefined, { ...formats[name], timeZone });
  made.set(key, format);
  return format.format(date);
}

/** Formats a time, with its day unless that is today. Default: the browser's time zone. */
export function timeOf(iso, zone) {
  const date = new Date(iso);
  const clock = write('clock', date, zone);
  const isToday = write('date', date, zone) === write('date', new Date(), zone);
  return isToday ? clock : `${write('day', date, zone)} ${clock.slice(0, 5)}`;
}

export const fullTime = (iso, zone) => write('full', new Date(iso), zone);

/** Formats a duration, e.g. 0.3 s, 12.4 s, 2:05, 1:02:05. */
export function duration(ms) {
  if (ms === undefined || Number.isNaN(ms) || ms < 0) return '';
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  const s = Math.round(ms / 1_000);
  const two = (value) => String(value).padStart(2, '0');
  const rest = `${two(Math.floor((s % 3_600) / 60))}:${two(s % 60)}`;
  return s < 3_600 ? rest.replace(/^0/, '') : `${Math.floor(s / 3_600)}:${rest}`;
}

/** Formats how long something has lasted so far, e.g. 0 s, 12 s, 2:05. */
export const secondsSoFar = (ms) =>
  ms < 59_500 ? `${Math.floor(Math.max(0, ms) / 1_000)} s` : duration(ms);

/** Formats the time since the call began, e.g. +12.345. */
export function offset(ms) {
  const sign = ms < 0 ? '−' : '+';
  const s = Math.abs(ms) / 1_000;
  if (s < 60) return `${sign}${s.toFixed(3)}`;
  return `${sign}${Math.floor(s / 60)}:${(s % 60).toFixed(3).padStart(6, '0')}`;
}

export const between = (from, to) =>
  from === undefined || to === undefined ? undefined : Date.parse(to) - Date.parse(from);

const statusWords = {
  queued: 'Queued',
  dialing: 'Dialing',
  ringing: 'Ringing',
  answered: 'Answered',
  completed: 'Completed',
  failed: 'Failed',
  machineDetected: 'Machine',
};
export const statusWord = (status) => statusWords[status] ?? status;

const amdWords = {
  amd_human_detected: 'Person',
  amd_machine_detected: 'Machine',
  amd_no_speech_detected: 'No speech',
  amd_decision_timeout: 'Undecided',
  amd_machine_stopped_speaking: 'Greeting over',
  amd_tone_detected: 'Tone',
  amd_error: 'Detection failed',
  amd_stopped: 'Detection over',
};
export const amdWord = (event) => amdWords[event] ?? event;

/** Returns a notification's display name, which is its event, its verdict or its status. */
export const notificationName = ({ status, machineDetection, event }) => {
  if (status === 'Event') return event?.type ?? status;
  return status === 'Call-In-Progress' ? (machineDetection ?? status) : status;
};

/** Removes a target's scheme. */
export const numberOf = (target) => target.replace(/^(tel|sips?):/, '');

export const plural = (count, one, many = `${one}s`) =>
  `${count.toLocaleString()} ${count === 1 ? one : many}`;

export const capitalised = (words) => `${words.slice(0, 1).toUpperCase()}${words.slice(1)}`;

/** Estimates a label's width in the waveform. The estimate may be a pixel or two too large. */
export const labelPixels = (text) => text.length * 7 + 12;
