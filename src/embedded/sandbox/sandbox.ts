// A simulated carrier for first steps, tests and the demo. It uses real SIP (with an engine of its
// own) and real RTP, but only on loopback, so the gateway treats it like any other trunk.

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
  /** IP address for the sandbox's SIP and RTP sockets. */
  readonly sipHost: string;
  /** Default: 0, which selects any free port. */
  readonly sipPort?: number;
  readonly logger: Logger;
  /** Called at the end of every call. */
  readonly onCallEnded?: (summary: SandboxCallSummary) => void;
};

export type Sandbox = {
  /** The address for INVITEs, over UDP or TCP. */
  readonly host: string;
  readonly port: number;
  readonly activeCalls: number;
  close(): Promise<void>;
};

/**
 * A gateway on a developer's machine doesn't place this many simultaneous calls, so any further
 * calls are rejected with 503.
 */
const maxCalls = 1_000;

/** The engine runs in the same process, so if it doesn't respond quickly, it must be broken. */
const connectTimeoutMs = 5_000;

/** When the sandbox closes, we wait this long for the BYEs to active calls. */
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
 * Logs the end of a call. If the callee is the talker, we log the end at `info`, because developers
 * who are trying out a bot want to know how much of its audio arrived.
 */
function logEnd(logger: Logger, { recorded, ...rest }: SandboxCallSummary): void {
  const summary = recorded === undefined ? rest : { ...rest, recordedMs: recorded.length / 8 };
  if (summary.talk === undefined) logger.debug(summary, 'sandbox call ended');
  else logger.info(summary, 'the sandbox has talked with a caller');
}

/** Resolves once the engine is passing requests to the sandbox. */
async function connect(srf: SrfCallee, engine: SipEngine, secret: string): Promise<void> {
  const connected = once(srf, 'connect', { signal: AbortSignal.timeout(connectTimeoutMs) });
  srf.connect({ host: engine.controlHost, port: engine.controlPort, secret });
  const [error] = (await connected) as [Error | null];
  if (error !== null) throw new Error('the sandbox cannot use its engine', { cause: error });
  // drachtio-srf sends its route requests before it emits `connect`, and the engine reads this ping
  // after them. So once the pong arrives, we know that the routes exist.
  const { wp, mapServer } = srf.app.client;
  const pongs = [...mapServer].map(
    ([socket, { pendingRequests }]) =>
      new Promise<void>((resolve) => {
        pendingRequests.set(wp.send(socket, 'ping'), () => resolve());
      }),
  );
  await within(Promise.allSettled(pongs), connectTimeoutMs);
}

/**
 * `sip:+12025550100;ext=7@127.0.0.1:5070;user=phone` → `+12025550100;ext=7`. Returns an empty
 * string if the URI has no user part.
 */
function userOf(uri: string): string {
  return /^sips?:([^@:?]*)(?::[^@]*)?@/i.exec(uri)?.[1] ?? '';
}
