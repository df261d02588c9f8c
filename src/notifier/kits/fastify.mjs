// A receiver of notifications on Fastify.  WEBHOOK_SECRET=whsec_… node fastify.mjs

import fastify from 'fastify';
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

const app = fastify();

// A scope of its own, so that other routes keep their JSON: here a body is the bytes as they came, which are what is signed.
app.register((scope, _options, done) => {
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, parsed) =>
    parsed(null, body),
  );
  scope.post('/', async (request, reply) => {
    const { ok } = verify(request.body, request.headers['gateway-signature'], secret);
    if (!ok) return reply.code(401).send();
    // Answer at once, and do the work afterwards: the gateway waits for 10 s.
    return take(JSON.parse(request.body.toString()));
  });
  done();
});

await app.listen({ port: Number(process.env.PORT ?? 4000), host: '127.0.0.1' });
