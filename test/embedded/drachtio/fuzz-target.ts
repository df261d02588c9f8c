// A running engine under hostile input. Its application answers every request and hangs up every
// call that it places. A far end speaks UDP and TCP. Checks verify that the engine still works and
// holds nothing of what is over.

import { expect } from 'vitest';
import type { SipEngineStatistics } from '../../../src/embedded/drachtio/engine.ts';
import { eventually } from '../../support/eventually.ts';
import { recordedLogger } from '../../support/recorded-logger.ts';
import { startEmbeddedEngine } from '../../support/sip-engine.ts';
import { startApplication } from './fuzz-application.ts';
import { placeCallTo, receiveCall, roundTrip } from './fuzz-calls.ts';
import { response } from './fuzz-messages.ts';
import { openUdpPeer } from './transcripts/sockets.ts';

const SECRET = 'fuzz';

/**
 * A transaction's 32 s last a third of a second here. Nothing outlives that by more than a moment.
 */
const TIMERS = {
  t1Ms: 5,
  t2Ms: 40,
  t4Ms: 50,
  timerCMs: 500,
  inviteAnswerMs: 500,
  tcpIdleMs: 500,
  tcpPartialMs: 500,
  authenticateMs: 500,
  udpIdleMs: 500,
  ownerlessMs: 500,
  // The 90 s of a session's shortest interval last about as long as the other time-outs.
  sessionSecondMs: 4,
};

export type FuzzStatistics = Omit<SipEngineStatistics, 'dropped'>;

export type FuzzTarget = AsyncDisposable & {
  readonly sipPort: number;
  readonly controlPort: number;
  readonly secret: string;
  /** The far end on UDP. `takeInvites` returns the INVITEs received since the previous call. */
  readonly far: { readonly host: string; send(bytes: Buffer): void; takeInvites(): string[] };
  /** Makes the application place a call to the far end. */
  placeCall(): void;
  /**
   * Resolves when the engine has answered a well-formed request over UDP. It has then handled
   * everything that was sent before.
   */
  stillAnswers(): Promise<void>;
  /** Makes calls in both directions, over UDP and TCP. Throws if one of them fails. */
  stillCalls(): Promise<void>;
  statistics(): FuzzStatistics;
  /** Waits until the engine holds no more than before. Fails if a handler has thrown. */
  settlesTo(before: FuzzStatistics): Promise<void>;
};

export async function startFuzzTarget(): Promise<FuzzTarget> {
  // The engine survives an exception in a handler, but logs it as an error.
  const { logger, lines } = recordedLogger('error');
  const engine = await startEmbeddedEngine({ secret: SECRET, timers: TIMERS, logger });
  let invites: string[] = [];
  const peer = await openUdpPeer((text) => {
    if (text.startsWith('INVITE ')) invites.push(text);
    else if (!/^(ACK |SIP\/2\.0 )/.test(text)) {
      peer.send(response(text, '200 OK', `127.0.0.1:${peer.port}`), engine.sipPort);
    }
  });
  const application = await startApplication(engine.controlPort, SECRET);
  const statistics = () => {
    // The count of dropped messages only grows. The other counts are of things that the engine
    // holds.
    const { dropped: _, ...held } = engine.statistics();
    return held;
  };

  return {
    sipPort: engine.sipPort,
    controlPort: engine.controlPort,
    secret: SECRET,
    far: {
      host: `127.0.0.1:${peer.port}`,
      send: (bytes) => peer.send(bytes, engine.sipPort),
      takeInvites: () => {
        const taken = invites;
        invites = [];
        return taken;
      },
    },
    placeCall: () => application.place(`sip:far@127.0.0.1:${peer.port}`),
    stillAnswers: () => roundTrip(engine.sipPort),
    stillCalls: async () => {
      await receiveCall('UDP', engine.sipPort);
      await receiveCall('TCP', engine.sipPort);
      await placeCallTo((uri) => application.place(uri), engine.sipPort);
    },
    statistics,
    settlesTo: async (before) => {
      const grown = () =>
        Object.entries(statistics()).filter(
          ([name, value]) => value > before[name as keyof FuzzStatistics],
        );
      expect(lines, 'messages on which a handler threw').toEqual([]);
      await eventually(
        () => grown().length === 0,
        () => `the engine holds no more than before; left over: ${JSON.stringify(grown())}`,
      );
    },
    [Symbol.asyncDispose]: async () => {
      application.close();
      await peer.close();
      await engine.close();
    },
  };
}
