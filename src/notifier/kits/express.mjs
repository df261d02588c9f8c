// A receiver of notifications on Express.
// WEBHOOK_SECRET=whsec_… node express.mjs

import express from 'express';
import { verify } from 'offhook/webhooks';

const secret = process.env.WEBHOOK_SECRET;

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

const app = express();

// `raw` instead of `json`, because the signature covers the raw body. Add `app.use(express.json())`
// only after this route.
app.post('/', express.raw({ type: '*/*', limit: '1mb' }), (request, response) => {
  const { ok } = verify(request.body, request.get('gateway-signature'), secret);
  if (!ok) return response.status(401).end();
  // Respond first and do the work afterwards, because the gateway waits at most 10 s.
  response.type('text').send(take(JSON.parse(request.body.toString())));
});

app.listen(Number(process.env.PORT ?? 4000), '127.0.0.1');
