// Measures how soon two people hear each other. The time runs from the 200 OK of the second leg, as
// its phone sends it, until each of the two phones has the first packet of the other voice. The
// whole gateway runs, with its embedded engine and database.

import { eventually } from '../../support/eventually.ts';
import { type GatewayProcess, makeDataDir, startGateway } from '../../support/gateway-process.ts';
import { type Receiver, startReceiver } from '../../support/receiver.ts';
import { StreamCallee } from '../../support/streams/stream-callee.ts';

const frame = (byte: number): Buffer => Buffer.alloc(160, byte);
const voices = { person: frame(0x11), agent: frame(0x22) } as const;
const atOnce = 4;

/**
 * Places `calls` calls, four at a time, and returns their delays in milliseconds. `reportedMs`
 * holds the `msToTwoWayAudio` of the gateway, for the calls in which it heard both voices before
 * the end.
 */
export async function twoWayAudio(
  calls: number,
): Promise<{ readonly heardMs: readonly number[]; readonly reportedMs: readonly number[] }> {
  const dataDir = await makeDataDir();
  const receiver = await startReceiver();
  const gateway = await startGateway(dataDir.path);
  const heardMs: number[] = [];
  const reportedMs: number[] = [];
  try {
    let left = calls;
    const work = async (): Promise<void> => {
      while (left > 0) {
        left -= 1;
        const measured = await connectOnce(gateway, receiver);
        heardMs.push(measured.heardMs);
        if (measured.reportedMs !== undefined) reportedMs.push(measured.reportedMs);
      }
    };
    await Promise.all(Array.from({ length: atOnce }, work));
  } finally {
    await gateway.terminate();
    await receiver.close();
    await dataDir.remove();
  }
  return { heardMs, reportedMs };
}

async function connectOnce({ dialer }: GatewayProcess, receiver: Receiver) {
  const agents = await StreamCallee.waiting();
  const { callee: person, placed } = await StreamCallee.called((target) =>
    dialer.dial({ target, notifyurl: receiver.url, bridge: { to: agents.target } }),
  );
  await person.answer();
  const agent = await agents.called();
  agent.ring();
  const talking = [setInterval(() => person.send(voices.person), 20)];
  try {
    const answeredMs = performance.now();
    const acknowledged = agent.answer();
    talking.push(setInterval(() => agent.send(voices.agent), 20));
    agent.send(voices.agent);
    await acknowledged;
    await eventually(
      () => firstOf(agent, voices.person) > 0 && firstOf(person, voices.agent) > 0,
      'they hear each other',
    );
    agent.hangUp();
    await person.isHungUp().catch(async (error: unknown) => {
      console.error(JSON.stringify((await dialer.call(placed.callId)).body));
      throw error;
    });
    const transfer = (await receiver.untilEnded(placed.callId)).at(-1)?.['transfer'];
    const bothMs = Math.max(firstOf(agent, voices.person), firstOf(person, voices.agent));
    const reported = (transfer as { readonly msToTwoWayAudio?: number }).msToTwoWayAudio;
    return { heardMs: bothMs - answeredMs, reportedMs: reported };
  } finally {
    for (const timer of talking) clearInterval(timer);
    await person[Symbol.asyncDispose]();
    await agent[Symbol.asyncDispose]();
  }
}

/** Returns when the phone got the first packet of a voice. 0 if it has not got one yet. */
function firstOf(phone: StreamCallee, voice: Buffer): number {
  return phone.packets.find(({ payload }) => payload.equals(voice))?.atMs ?? 0;
}
