// A receiver of notifications on Node alone.  WEBHOOK_SECRET=whsec_… node node.mjs

import { createServer } from 'node:http';
import { verify } from 'offhook/webhooks';

const secret = process.env.WEBHOOK_SECRET;
const longestBodyBytes = 1024 * 1024;

// A table in production: kept as long as a replay may come, and shared by all processes that receive.
const calls = new Map();

/** Drops what came before, and keeps what came late from overwriting what is newer. */
function take({ callId, eventId, sequence, status }) {
  const call = calls.get(callId) ?? { sequence: 0, seen: new Set() };
  if (call.seen.has(eventId)) return 'duplicate';
  calls.set(callId, call);
  call.seen.add(eventId);
  if (calls.size > 10_000) calls.delete(calls.keys().next().value);
  if (sequence < call.sequence) return 'late';
  call.sequence = sequence;
  // An event that `notifyEvents` of the request selects is no state of the call.
  if (status !== 'Event') call.status = status;
  return 'applied';
}

/** The bytes as they came: the signature is over them, before any parsing. Undefined: too many. */
async function rawBodyOf(request) {
  const chunks = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += chunk.length;
    if (bytes > longestBodyBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

async function receive(request, response) {
  const rawBody = await rawBodyOf(request);
  if (rawBody === undefined) return response.writeHead(413, { connection: 'close' }).end();
  const { ok } = verify(rawBody, request.headers['gateway-signature'], secret);
  if (!ok) return response.writeHead(401).end();
  // Answer at once, and do the work afterwards: the gateway waits for 10 s.
  response.end(take(JSON.parse(rawBody.toString())));
}

createServer((request, response) => {
  receive(request, response).catch(() => response.writeHead(400).end());
}).listen(Number(process.env.PORT ?? 4000), '127.0.0.1');
