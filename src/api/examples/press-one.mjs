// "To talk to a person, press one": calls a phone, plays a prompt when a person answers, and
// connects them to an agent when they press 1.
//
//   OFFHOOK_URL=http://127.0.0.1:3000 OFFHOOK_TOKEN=$(npx offhook token) \
//     node press-one.mjs <target> <agent> <sound>

import { setTimeout as pause } from 'node:timers/promises';

const [target, agent, sound] = process.argv.slice(2);
const { OFFHOOK_URL: base, OFFHOOK_TOKEN: auth } = process.env;
const bot = 'press-one';
/** How long to wait for the key after the sound has ended. */
const patienceMs = 8_000;

async function post(path, body, more = {}) {
  const headers = { auth, 'content-type': 'application/json', ...more };
  const response = await fetch(base + path, {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
  });
  return { status: response.status, body: await response.json() };
}

const unanswered = ({ message }) => ({ status: 503, body: { detail: message } });

/**
 * Sends a command, and returns whether the gateway accepted it. After a 503 we don't know whether
 * the command was carried out. We can safely send it again, because it has an id.
 */
async function command(id, members) {
  const path = `/api/public/bot/${bot}/calls/${callId}/commands`;
  for (let attempt = 1; ; attempt += 1) {
    const { status, body } = await post(path, members, { 'idempotency-key': id }).catch(unanswered);
    console.log(`${members.command}: ${body.detail ?? 'taken'}`);
    if (status !== 503 || attempt === 3) return status === 202;
    await pause(1_000);
  }
}

/** Hangs up when there is nothing more to do, so that nobody is left in a silent call. */
const goodbye = () => command('goodbye', { command: 'hangup' });

/**
 * Yields the messages from a server-sent events stream until it ends or the connection is lost. For
 * a comment, `event` is empty.
 */
async function* messagesOf(stream) {
  let text = '';
  try {
    for await (const chunk of stream.pipeThrough(new TextDecoderStream())) {
      const messages = (text + chunk).split('\n\n');
      text = messages.pop();
      for (const message of messages) {
        const field = (name) => new RegExp(`^${name}: ?(.*)$`, 'm').exec(message)?.[1];
        yield { id: field('id'), event: JSON.parse(field('data') ?? '{}') };
      }
    }
  } catch {
    console.log('lost the event stream');
  }
}

/**
 * Connects to the call's event stream. Retries while the gateway restarts or has too many
 * connections.
 */
async function connected(headers) {
  const url = `${base}/api/public/bot/${bot}/calls/${callId}/events`;
  for (;;) {
    const answer = await fetch(url, { headers }).catch(() => ({ status: 503 }));
    if (answer.ok) return answer.body;
    if (answer.status !== 429 && answer.status < 500) {
      await goodbye();
      throw new Error(`${answer.status}: ${await answer.text()}`);
    }
    await pause(1_000);
  }
}

/**
 * Yields all the call's events, each once. If the connection breaks, it reconnects and continues
 * after the last event.
 */
async function* events() {
  const headers = { auth };
  let seen = 0;
  for (;;) {
    for await (const { id, event } of messagesOf(await connected(headers))) {
      headers['last-event-id'] = id ?? headers['last-event-id'] ?? '';
      if (event.eventSequence > seen) yield event;
      seen = Math.max(seen, event.eventSequence ?? 0);
    }
    await pause(1_000);
  }
}

const placed = await post(`/api/1.1/public/bot/${bot}/V2/contactcenter/dialout`, {
  ...{ botId: bot, target, caller: '15559876543', machineDetection: 'disconnect' },
});
if (placed.status !== 200) throw new Error(JSON.stringify(placed.body));
const { callId } = placed.body;

let keyTimer;
let isWanted = false;
for await (const { type, data } of events()) {
  console.log(type, data.amd?.event ?? data.digit ?? data.outcome ?? '');
  const amd = data.amd?.event;
  if (amd === 'amd_human_detected') {
    if (!(await command('menu', { command: 'play', sound }))) await goodbye();
  }
  // With `disconnect`, the gateway itself hangs up on a machine.
  if (amd === 'amd_no_speech_detected' || amd === 'amd_decision_timeout') await goodbye();
  if (type === 'playback-finished' && !isWanted) {
    keyTimer = setTimeout(() => void goodbye(), patienceMs);
  }
  if (type === 'dtmf' && data.digit === '1' && !isWanted) {
    isWanted = true;
    clearTimeout(keyTimer);
    // Stop the prompt: the person may have pressed the key early.
    await command('quiet', { command: 'stop' });
    const transfer = { command: 'transfer', to: agent, timeoutMs: 20_000 };
    if (!(await command('agent', transfer))) await goodbye();
  }
  if (type === 'completed' || type === 'failed') {
    clearTimeout(keyTimer);
    if (data.transfer) console.log(JSON.stringify(data.transfer));
    break;
  }
}
