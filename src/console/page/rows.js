// Builds the rows of a call's timeline from SIP messages, events, notifications and notes.

import { deliveryHistory, notificationWords } from './delivery-words.js';
import { eventWords, notificationWord } from './event-words.js';
import { duration, notificationName } from './format.js';

/** The kinds of rows with their names. Rows that have the same time are sorted in this order. */
export const kinds = {
  command: 'Commands',
  sip: 'SIP',
  event: 'Events',
  bot: 'Bot',
  words: 'Words',
  notification: 'Notifications',
};
const order = Object.fromEntries(Object.keys(kinds).map((kind, index) => [kind, index]));

export function rowsOf({ call, notifications, capture }) {
  const rows = [
    ...(capture?.sip?.messages ?? []).map(sipRow),
    ...call.timeline.map((event) => eventRow(event, capture?.lines)),
    ...notificationRows(notifications ?? []),
    ...noteRows(capture?.notes?.notes ?? []),
  ];
  return rows.sort(
    (a, b) =>
      Date.parse(a.at) - Date.parse(b.at) || order[a.kind] - order[b.kind] || a.rank - b.rank,
  );
}

function sipRow({ at, isOurs, text, transport, address, port, leg = 0 }, index) {
  const [first] = text.split('\r\n', 1);
  const isResponse = first.startsWith('SIP/2.0 ');
  const method = /^cseq[ \t]*:[ \t]*\d+[ \t]+(\w+)/im.exec(text)?.[1] ?? '';
  const status = Number(first.slice(8, 11));
  const hasBody = text.includes('\r\n\r\n') && !text.endsWith('\r\n\r\n');
  return {
    key: `sip-${index}`,
    rank: index,
    kind: 'sip',
    at,
    arrow: isOurs ? 'out' : 'in',
    leg,
    label: `${isResponse ? first.slice(8) : first.split(' ', 1)[0]}${isResponse && method !== '' ? ` (${method})` : ''}${hasBody ? ' + SDP' : ''}`,
    tone: isResponse && status >= 400 ? 'bad' : '',
    detail: () =>
      `from ${address || 'the engine itself'}${port ? `:${port}` : ''} ${transport}\n\n${text.trimEnd()}`,
  };
}

function eventRow(event, lines) {
  const { eventId, eventSequence, type, time, data } = event;
  const { name, code, note, noteCode } = eventWords(event, lines?.[eventId]);
  return {
    key: eventId,
    rank: eventSequence,
    kind: 'event',
    at: time,
    ...{ label: name, code, note, noteCode },
    tone: /^(recording-)?failed$/.test(type)
      ? 'bad'
      : type === 'answered' || type === 'completed'
        ? 'good'
        : '',
    detail: () =>
      Object.keys(data).length === 0 ? 'No further data.' : JSON.stringify(data, null, 2),
  };
}

/** One row per notification. Its attempts and replays open inside the row. */
function notificationRows(notifications) {
  const first = notifications.find(({ state }) => state === 'pending');
  return notifications.map((notification) => {
    const { eventId, sequence, createdAt, body } = notification;
    const { text, code, tone } = notificationWords(notification, notification === first);
    return {
      key: `notification-${eventId}`,
      rank: sequence,
      kind: 'notification',
      at: createdAt,
      label: notificationWord(body),
      code: notificationName(body),
      ...{ note: text, noteCode: code, tone },
      parts: deliveryHistory(notification),
      detail: () => JSON.stringify(body, null, 2),
    };
  });
}

// ── Notes ─────────────────────────────────────────────────────────────────────────────────────

/** If the silence before words is longer than this, the words start a new row. */
const longestGapMs = 1_200;

function noteRows(notes) {
  const others = notes.filter(({ kind }) => kind !== 'words');
  return [
    ...others.map(noteRow).filter((row) => row !== undefined),
    ...utterancesOf(notes.filter(({ kind }) => kind === 'words')).map(wordsRow),
  ];
}

/** @returns undefined for a kind of note that a later version has introduced */
function noteRow(note, index) {
  const at = new Date(note.at).toISOString();
  const row = {
    key: `note-${index}`,
    rank: index,
    at,
    detail: () => JSON.stringify(note, null, 2),
  };
  if (note.kind === 'mark') {
    const result =
      note.returnedAt === undefined
        ? 'not returned'
        : `returned after ${duration(note.returnedAt - note.at)}`;
    return { ...row, kind: 'bot', label: `mark ${note.name}`, note: result };
  }
  if (note.kind === 'clear')
    return { ...row, kind: 'bot', label: 'clear', note: `${duration(note.droppedMs)} not played` };
  if (note.kind !== 'command') return undefined;
  const result =
    note.refusal === undefined ? `taken in ${note.tookMs} ms` : `refused: ${note.refusal}`;
  return {
    ...row,
    kind: 'command',
    label: note.what,
    note: `by ${note.by}, ${result}`,
    tone: note.refusal === undefined ? '' : 'bad',
  };
}

function utterancesOf(words) {
  const utterances = [];
  for (const word of words) {
    const current = utterances.at(-1);
    if (current && word.at - current.at(-1).untilAt < longestGapMs) current.push(word);
    else utterances.push([word]);
  }
  return utterances;
}

function wordsRow(words, index) {
  const [first] = words;
  return {
    key: `words-${first.at}-${index}`,
    rank: index,
    kind: 'words',
    at: new Date(first.at).toISOString(),
    label: 'heard',
    note: `“${words.map(({ text }) => text).join(' ')}”`,
    detail: () =>
      words
        .map(
          ({ at, untilAt, text }) =>
            `+${((at - first.at) / 1_000).toFixed(2)} s  ${text}  (${untilAt - at} ms)`,
        )
        .join('\n'),
  };
}
