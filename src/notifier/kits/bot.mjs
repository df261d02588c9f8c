// A bot flow that reads the context of its call over HTTP, and acts on who picked up: it says so for a person, and hangs up on a
// machine.  OFFHOOK_URL=http://127.0.0.1:3000 OFFHOOK_TOKEN=$(npx offhook token) node bot.mjs <botId> <callId>

const [botId, callId] = process.argv.slice(2).map(encodeURIComponent);
const call = `${process.env.OFFHOOK_URL}/api/public/bot/${botId}/calls/${callId}`;
const headers = { auth: process.env.OFFHOOK_TOKEN };

async function ask(url, method = 'GET') {
  const response = await fetch(url, { method, headers });
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
  return await response.json();
}

/** Detection is over when `amd_stopped` is there, which every call gets that was answered with detection on. */
async function isOver(amd) {
  return amd.includes('amd_stopped') || (await ask(call)).state === 'ended';
}

let known = 0;
for (;;) {
  const askedAt = Date.now();
  const { session, metadata } = await ask(`${call}/context?wait=30s`);
  const { amd, amdInfo } = session.UserSession;
  for (const { event, reason, words } of (amdInfo.amdEvents ?? []).slice(known)) {
    console.log(JSON.stringify({ event, reason, words, metadata }));
    if (event === 'amd_human_detected') console.log('a person: go on talking');
    if (event === 'amd_machine_detected') {
      const { state } = await ask(call, 'DELETE');
      console.log(`a machine: hung up, the call is ${state}`);
    }
  }
  known = amd.length;
  if (await isOver(amd)) break;
  // Whatever the answer: not more than five questions a second.
  await new Promise((resolve) => setTimeout(resolve, 200 - (Date.now() - askedAt)));
}
