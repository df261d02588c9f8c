// A bot flow that reads its call's context over HTTP. It prints a line if a person answered, and
// hangs up if a machine answered.
// OFFHOOK_URL=http://127.0.0.1:3000 OFFHOOK_TOKEN=$(npx offhook token) \
//   node bot.mjs <botId> <callId>

const [botId, callId] = process.argv.slice(2).map(encodeURIComponent);
const call = `${process.env.OFFHOOK_URL}/api/public/bot/${botId}/calls/${callId}`;
const headers = { auth: process.env.OFFHOOK_TOKEN };

async function request(url, { method = 'GET', known } = {}) {
  // If we send the previous response's `ETag`, the gateway waits for the context to change.
  const more = known === undefined ? {} : { 'if-none-match': known };
  const response = await fetch(url, { method, headers: { ...headers, ...more } });
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
  return { body: await response.json(), etag: response.headers.get('etag') ?? undefined };
}

/** Whether detection has ended. Answered calls with detection always get `amd_stopped`. */
async function hasEnded(amd) {
  return amd.includes('amd_stopped') || (await request(call)).body.state === 'ended';
}

let seen = 0;
let known;
for (;;) {
  const { body, etag } = await request(`${call}/context?wait=30s`, { known });
  const { amd, amdInfo } = body.session.UserSession;
  for (const { event, reason, words } of (amdInfo.amdEvents ?? []).slice(seen)) {
    console.log(JSON.stringify({ event, reason, words, metadata: body.metadata }));
    if (event === 'amd_human_detected') console.log('a person: go on talking');
    if (event === 'amd_machine_detected') {
      const { state } = (await request(call, { method: 'DELETE' })).body;
      console.log(`a machine: hung up, the call is ${state}`);
    }
  }
  [seen, known] = [amd.length, etag];
  if (await hasEnded(amd)) break;
}
