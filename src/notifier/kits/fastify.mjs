// A receiver of notifications on Fastify.
// WEBHOOK_SECRET=whsec_… node fastify.mjs

import fastify from 'fastify';
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

const app = fastify();

// This scope does not parse bodies, because the signature covers the raw body. Routes outside it
// still parse JSON.
app.register((scope, _options, done) => {
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, parsed) =>
    parsed(null, body),
  );
  scope.post('/', async (request, reply) => {
    const { ok } = verify(request.body, request.headers['gateway-signature'], secret);
    if (!ok) return reply.code(401).send();
    // Respond first and do the work afterwards, because the gateway waits at most 10 s.
    return take(JSON.parse(request.body.toString()));
  });
  done();
});

await app.listen({ port: Number(process.env.PORT ?? 4000), host: '127.0.0.1' });
