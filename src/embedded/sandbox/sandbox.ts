// A carrier for first tries, tests and the demo: real SIP on an engine of its own, real RTP, on loopback. The gateway sees
// it as one more trunk and knows nothing else of it.

import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import Srf from 'drachtio-srf';
import type { Logger } from '../../lib/logger.ts';
import { within } from '../../lib/within.ts';
import { type SipEngine, startSipEngine } from '../drachtio/engine.ts';
import { FrameClock } from './frame-clock.ts';
import { SandboxCall, type SandboxCallSummary } from './sandbox-call.ts';
import { findSandboxNumber } from './sandbox-numbers.ts';
import { createSoundLibrary } from './sounds.ts';
import type { CalleeRequest, CalleeResponse, SrfCallee } from './srf-callee.ts';

export type SandboxOptions = {
  /** Address of its SIP and RTP sockets. */
  readonly sipHost: string;
  /** 0 or left out: a free one. */
  readonly sipPort?: number;
  readonly logger: Logger;
  /** Told of every call's end. */
  readonly onCallEnded?: (summary: SandboxCallSummary) => void;
};

export type Sandbox = {
  /** Where to send INVITEs, UDP and TCP. */
  readonly host: string;
  readonly port: number;
  readonly activeCalls: number;
  close(): Promise<void>;
};

/** More calls at once than a laptop's gateway places; one more is a 503. */
const maxCalls = 1_000;

/** The engine is in this process: it answers at once or is broken. */
const connectTimeoutMs = 5_000;

/** How long the BYEs of running calls may take when the sandbox closes. */
const farewellMs = 1_000;

export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const { sipHost, logger } = options;
  // Read before anything listens: a broken installation is told at the start.
  const sounds = createSoundLibrary();
  const secret = randomBytes(16).toString('hex');
  const engine = await startSipEngine({
    sipHost,
    sipPort: options.sipPort ?? 0,
    controlHost: '127.0.0.1',
    controlPort: 0,
    secret,
    logger,
  });
  const srf = new Srf() as unknown as SrfCallee;
  const calls = new Set<SandboxCall>();
  const clock = new FrameClock();

  const deps = {
    srf,
    host: sipHost,
    clock,
    sounds,
    logger,
    onEnded(call: SandboxCall, summary: SandboxCallSummary) {
      calls.delete(call);
      logEnd(logger, summary);
      options.onCallEnded?.(summary);
    },
  };

  function onInvite(request: CalleeRequest, response: CalleeResponse): void {
    const row = findSandboxNumber(userOf(request.uri));
    if (row === undefined || calls.size >= maxCalls) {
      response.send(row === undefined ? 404 : 503);
      return;
    }
    const call = new SandboxCall(row, request, response, deps);
    calls.add(call);
    call
      .start()
      .catch((error: unknown) => {
        logger.warn({ err: error, callee: row.name }, 'sandbox call not started');
        return call.giveUp();
      })
      .catch((error: unknown) => logger.warn({ err: error }, 'sandbox call not refused'));
  }

  srf.on('error', (error) => logger.warn({ err: error }, 'sandbox engine connection failed'));
  srf.options((_request, response) => response.send(200));
  srf.invite(onInvite);
  try {
    await connect(srf, engine, secret);
  } catch (error) {
    await engine.close();
    throw error;
  }

  return {
    host: sipHost,
    port: engine.sipPort,
    get activeCalls() {
      return calls.size;
    },
    async close() {
      await within(Promise.allSettled([...calls].map((call) => call.giveUp())), farewellMs);
      srf.disconnect();
      await engine.close();
    },
  };
}

/** Who tries a bot with the talker wants to know what came through. */
function logEnd(logger: Logger, { recorded, ...rest }: SandboxCallSummary): void {
  const summary = recorded === undefined ? rest : { ...rest, recordedMs: recorded.length / 8 };
  if (summary.talk === undefined) logger.debug(summary, 'sandbox call ended');
  else logger.info(summary, 'the sandbox has talked with a caller');
}

/** Resolves when the engine knows what it has to hand to us. */
async function connect(srf: SrfCallee, engine: SipEngine, secret: string): Promise<void> {
  const connected = once(srf, 'connect', { signal: AbortSignal.timeout(connectTimeoutMs) });
  srf.connect({ host: engine.controlHost, port: engine.controlPort, secret });
  const [error] = (await connected) as [Error | null];
  if (error !== null) throw new Error('the sandbox cannot use its engine', { cause: error });
  // Srf asks for its routes before it tells of the connection; the engine reads a ping after them.
  const { wp, mapServer } = srf.app.client;
  const pongs = [...mapServer].map(
    ([socket, { pendingRequests }]) =>
      new Promise<void>((resolve) => {
        pendingRequests.set(wp.send(socket, 'ping'), () => resolve());
      }),
  );
  await within(Promise.allSettled(pongs), connectTimeoutMs);
}

/** `sip:+12025550100@127.0.0.1:5070;user=phone` → `+12025550100`; empty when there is none. */
function userOf(uri: string): string {
  return /^sips?:([^@;:?]*)(?::[^@]*)?@/i.exec(uri)?.[1]?.split(';')[0] ?? '';
}
