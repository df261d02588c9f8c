// A carrier for first steps, tests and the demo. It speaks real SIP (with its own engine) and real
// RTP, on loopback. The gateway treats it like any other trunk.

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
  /** Address of the sandbox's SIP and RTP sockets. */
  readonly sipHost: string;
  /** Default: 0, any free port. */
  readonly sipPort?: number;
  readonly logger: Logger;
  /** Called at the end of every call. */
  readonly onCallEnded?: (summary: SandboxCallSummary) => void;
};

export type Sandbox = {
  /** Where to send INVITEs, over UDP or TCP. */
  readonly host: string;
  readonly port: number;
  readonly activeCalls: number;
  close(): Promise<void>;
};

/**
 * A gateway on a laptop doesn't place this many simultaneous calls. Further calls are rejected with
 * 503.
 */
const maxCalls = 1_000;

/** The engine runs in this process, so if it doesn't respond quickly, it's broken. */
const connectTimeoutMs = 5_000;

/** How long we wait for BYEs to active calls when the sandbox closes. */
const closeTimeoutMs = 1_000;

export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const { sipHost, logger } = options;
  // Load the sounds before listening, so that a broken installation fails early.
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
      .catch((error: unknown) =>
        logger.warn({ err: error }, 'a sandbox call that failed to start was not refused'),
      );
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
      await within(Promise.allSettled([...calls].map((call) => call.giveUp())), closeTimeoutMs);
      srf.disconnect();
      await engine.close();
    },
  };
}

/**
 * Logs a call's end. Calls with the talker are logged at `info`, because developers trying out a
 * bot want to know how much of its audio arrived.
 */
function logEnd(logger: Logger, { recorded, ...rest }: SandboxCallSummary): void {
  const summary = recorded === undefined ? rest : { ...rest, recordedMs: recorded.length / 8 };
  if (summary.talk === undefined) logger.debug(summary, 'sandbox call ended');
  else logger.info(summary, 'the sandbox has talked with a caller');
}

/** Resolves once the engine passes requests to the sandbox. */
async function connect(srf: SrfCallee, engine: SipEngine, secret: string): Promise<void> {
  const connected = once(srf, 'connect', { signal: AbortSignal.timeout(connectTimeoutMs) });
  srf.connect({ host: engine.controlHost, port: engine.controlPort, secret });
  const [error] = (await connected) as [Error | null];
  if (error !== null) throw new Error('the sandbox cannot use its engine', { cause: error });
  // drachtio-srf sends its route requests before it emits `connect`. The engine reads this ping
  // after them, so its pong proves that the routes exist.
  const { wp, mapServer } = srf.app.client;
  const pongs = [...mapServer].map(
    ([socket, { pendingRequests }]) =>
      new Promise<void>((resolve) => {
        pendingRequests.set(wp.send(socket, 'ping'), () => resolve());
      }),
  );
  await within(Promise.allSettled(pongs), connectTimeoutMs);
}

/** `sip:+12025550100@127.0.0.1:5070;user=phone` → `+12025550100`. Empty if the URI has no user. */
function userOf(uri: string): string {
  return /^sips?:([^@;:?]*)(?::[^@]*)?@/i.exec(uri)?.[1]?.split(';')[0] ?? '';
}
