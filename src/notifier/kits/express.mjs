// A receiver of notifications on Express.  WEBHOOK_SECRET=whsec_… node express.mjs

import express from 'express';
import { verify } from 'offhook/webhooks';

const secret = process.env.WEBHOOK_SECRET;

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

const app = express();

// `raw` and not `json`: the signature is over the bytes as they came. An `app.use(express.json())` must come after this.
app.post('/', express.raw({ type: '*/*', limit: '1mb' }), (request, response) => {
  const { ok } = verify(request.body, request.get('gateway-signature'), secret);
  if (!ok) return response.status(401).end();
  // Answer at once, and do the work afterwards: the gateway waits for 10 s.
  response.type('text').send(take(JSON.parse(request.body.toString())));
});

app.listen(Number(process.env.PORT ?? 4000), '127.0.0.1');
