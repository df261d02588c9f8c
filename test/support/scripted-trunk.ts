// A trunk behind a scripted engine. The test answers each frame on the control connection of a
// call.

import type { CallId } from '../../src/calls/contract/identity.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { createDrachtioSip } from '../../src/sip/drachtio-sip.ts';
import { builtInTrunk, loadTrunks, type Trunk } from '../../src/sip/trunks/trunks.ts';
import { eventually } from './eventually.ts';
import { RecordingLeg } from './recording-leg.ts';
import { type ControlFrame, ScriptedDrachtio, type ScriptedInvite } from './scripted-drachtio.ts';

const sdp = 'v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\n';
const target = { kind: 'tel', number: '15551230001' } as const;
/** A call for tests that read one INVITE. */
export const someCall = {
  ...{ callId: 'call-1' as CallId, target, caller: '15550001111', offerSdp: sdp },
};

export type ScriptedTrunk = Awaited<ReturnType<typeof openScriptedTrunk>>;

/** Opens the trunk `carrier` with the given members. */
export async function openScriptedTrunk(members: Partial<Trunk> = {}) {
  const drachtio = await ScriptedDrachtio.start();
  const gateway = { host: '127.0.0.1', port: 5070, transport: 'udp' } as const;
  const sip = createDrachtioSip({
    servers: [drachtio.address],
    trunks: loadTrunks({
      secrets: () => ({}),
      builtIn: [{ ...builtInTrunk('carrier', gateway), ...members }],
    }),
    allowedNetworks: ['127.0.0.0/8'],
    logger: silentLogger,
    clock: { now: () => new Date() },
    limits: { disposeTimeoutMs: 50, byeTimeoutMs: 200 },
  });
  await eventually(() => sip.ready(), 'the engine is connected');
  return {
    ...{ drachtio, sip },
    /** Places a call. Resolves when the engine has confirmed its INVITE. */
    async placed() {
      const observer = new RecordingLeg();
      const leg = sip.place(someCall, observer);
      const invite = await drachtio.takeInvite();
      invite.confirm();
      return {
        ...{ leg, invite, observer },
        answer: async (): Promise<void> => {
          invite.respond(200, 'OK', { body: sdp });
          await observer.until('answered');
          leg.acknowledge();
          await drachtio.take('ACK');
        },
      };
    },
    async [Symbol.asyncDispose](): Promise<void> {
      await sip[Symbol.asyncDispose]();
      await drachtio[Symbol.asyncDispose]();
    },
  };
}

/**
 * Sends the engine's confirmation that a request was sent within a dialog, followed by the far
 * end's answer. Returns the id of the transaction. `more`: headers that sofia does not know, which
 * it puts after Content-Length.
 */
export function answerInDialog(
  drachtio: ScriptedDrachtio,
  { localTag, callId, dialogId }: ScriptedInvite,
  request: ControlFrame,
  status: string,
  more: readonly string[] = [],
  cseq = 101,
): string {
  const transactionId = `txn-${drachtio.nextId()}`;
  const method = request.sip.slice(0, request.sip.indexOf(' '));
  const lines = [
    `Via: SIP/2.0/UDP 127.0.0.1;rport=5060;branch=z9hG4bK${method.toLowerCase()}`,
    `From: <sip:100@127.0.0.1:5060>;tag=${localTag}`,
    'To: <sip:callee@127.0.0.1:5070>;tag=remote',
    `Call-ID: ${callId}`,
    `CSeq: ${cseq} ${method}`,
    'Content-Length: 0',
  ];
  const message = (first: string, rest: readonly string[]) =>
    [first, ...lines, ...rest, '', ''].join('\r\n');
  drachtio.confirm(
    request,
    transactionId,
    message(`${method} sip:callee@127.0.0.1:5070 SIP/2.0`, []),
  );
  const meta = { transactionId, dialogId };
  drachtio.deliver(request.from, message(`SIP/2.0 ${status}`, more), meta);
  return transactionId;
}
