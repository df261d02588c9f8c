// A receiver of notifications in plain Node.
// WEBHOOK_SECRET=whsec_… node node.mjs

import { createServer } from 'node:http';
import { verify } from 'offhook/webhooks';

const secret = process.env.WEBHOOK_SECRET;
const maxBodyBytes = 1024 * 1024;

// In production, use a table that all receiving processes share. Keep a call's row until no replay
// of its notifications can arrive.
const calls = new Map();

/** Ignores repetitions, and keeps late notifications from overwriting newer ones. */
function take({ callId, eventId, sequence, status }) {
  const call = calls.get(callId) ?? { sequence: 0, seen: new Set() };
  if (call.seen.has(eventId)) return 'duplicate';
  calls.set(callId, call);
  call.seen.add(eventId);
  if (calls.size > 10_000) calls.delete(calls.keys().next().value);
  if (sequence < call.sequence) return 'late';
  call.sequence = sequence;
  // An event that `notifyEvents` selected is not a status of the call.
  if (status !== 'Event') call.status = status;
  return 'applied';
}

/**
 * Reads the raw body. The signature covers exactly these bytes, so nothing may parse them before.
 *
 * @returns undefined if the body is too long
 */
async function rawBodyOf(request) {
  const chunks = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += chunk.length;
    if (bytes > maxBodyBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

async function receive(request, response) {
  const rawBody = await rawBodyOf(request);
  if (rawBody === undefined) return response.writeHead(413, { connection: 'close' }).end();
  const { ok } = verify(rawBody, request.headers['gateway-signature'], secret);
  if (!ok) return response.writeHead(401).end();
  // Respond first and do the work afterwards, because the gateway waits at most 10 s.
  response.end(take(JSON.parse(rawBody.toString())));
}

createServer((request, response) => {
  receive(request, response).catch(() => response.writeHead(400).end());
}).listen(Number(process.env.PORT ?? 4000), '127.0.0.1');
