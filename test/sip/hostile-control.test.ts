import { expect, onTestFinished, test, vi } from 'vitest';
import type { CallId } from '../../src/calls/contract/identity.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { createDrachtioSip, type DrachtioSip } from '../../src/sip/drachtio-sip.ts';
import { builtInTrunk, loadTrunks } from '../../src/sip/trunks/trunks.ts';
import { eventually } from '../support/eventually.ts';
import { RecordingLeg } from '../support/recording-leg.ts';
import { ScriptedDrachtio } from '../support/scripted-drachtio.ts';

const sdp = 'v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\n';

/** Seeded, so that a failure can be repeated. */
function randomNumbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

function mutate(text: string, random: (below: number) => number): string {
  const lines = text.split('\r\n');
  const victim = random(lines.length);
  const line = lines[victim] ?? '';
  const at = random(line.length + 1);
  const ways = [
    () => lines.toSpliced(victim, 1),
    () => lines.toSpliced(victim, 0, line),
    () => lines.with(victim, line.slice(0, at)),
    () => lines.with(victim, line.slice(0, at) + String.fromCharCode(random(256)) + line.slice(at)),
    () => lines.with(victim, line.slice(0, at) + '<">;=,:@|#'.repeat(random(40)) + line.slice(at)),
    () => lines.with(victim, `${line.split(':')[0]}:`),
    () => lines.slice(0, victim),
  ];
  return (ways[random(ways.length)]?.() ?? lines).join('\r\n');
}

function placeOn(sip: DrachtioSip) {
  const observer = new RecordingLeg();
  const leg = sip.place(
    {
      callId: 'call-1' as CallId,
      target: { kind: 'tel', number: '1555' },
      caller: '100',
      offerSdp: sdp,
    },
    observer,
  );
  return { leg, observer };
}

test('mutated messages of the far end do not stop the port, and every call ends', async () => {
  // Srf prints each message that it cannot read.
  const printed = vi.spyOn(console, 'error').mockImplementation(() => undefined);
  onTestFinished(() => printed.mockRestore());
  const random = randomNumbers(20_261_120);
  await using drachtio = await ScriptedDrachtio.start();
  await using sip = createDrachtioSip({
    servers: [drachtio.address],
    trunks: loadTrunks({
      secrets: () => ({}),
      builtIn: [builtInTrunk('carrier', { host: '127.0.0.1', port: 5070, transport: 'udp' })],
    }),
    allowedNetworks: [],
    logger: silentLogger,
    clock: { now: () => new Date() },
    limits: { reconnectMinMs: 1, reconnectMaxMs: 5, disposeTimeoutMs: 20, byeTimeoutMs: 20 },
  });

  for (let round = 0; round < 40; round += 1) {
    await eventually(() => sip.ready(), 'the engine is connected');
    const { leg, observer } = placeOn(sip);
    const invite = await drachtio.takeInvite();
    invite.confirm();
    const headers = [
      'From: <sip:100@127.0.0.1:5060>;tag=x',
      'To: "Callee" <sip:callee@127.0.0.1:5070>;tag=remote',
      `Call-ID: ${invite.callId}`,
      'CSeq: 100 INVITE',
      'Contact: <sip:callee@127.0.0.1:5070>',
      'Record-Route: <sip:a;lr>, <sip:b;lr>',
      'Reason: Q.850;cause=16;text="x"',
      'RSeq: 1',
      'Content-Type: application/sdp',
      `Content-Length: ${sdp.length}`,
      '',
      sdp,
    ].join('\r\n');
    const first = ['SIP/2.0 183 Progress', 'SIP/2.0 200 OK', 'SIP/2.0 401 Unauthorized'];
    const later = ['BYE', 'INVITE', 'UPDATE', 'INFO', 'ACK', 'NOTIFY', 'CANCEL', 'X'];
    for (let message = 0; message < 25; message += 1) {
      const isRequest = random(2) === 0;
      const startLine = isRequest
        ? `${later[random(later.length)]} sip:100@127.0.0.1 SIP/2.0`
        : (first[random(first.length)] ?? '');
      drachtio.deliver(invite.frame.from, mutate(`${startLine}\r\n${headers}`, random), {
        transactionId: isRequest ? 'txn-new' : invite.transactionId,
        dialogId: invite.dialogId,
      });
    }
    leg.hangUp('enough');
    await eventually(
      () => observer.events.some(({ kind }) => kind === 'failed' || kind === 'ended'),
      'the call ends',
    );
    invite.respond(487, 'Request Terminated');
    await leg.released;
    const ends = observer.events.filter(({ kind }) => kind === 'failed' || kind === 'ended');
    expect(ends).toHaveLength(1);
    drachtio.frames.length = 0;
  }

  expect(sip.liveLegs()).toBe(0);
});
