// Sends REGISTER for trunks whose carrier requires it (RFC 3261, section 10.2). We register at each
// gateway from each SIP engine, because the carrier learns the engine's address that way.
// Registrations are renewed before they expire, and retried if they fail. We never unregister,
// because other nodes may be using the same engine, and a registration expires by itself if nobody
// renews it.

import { randomUUID } from 'node:crypto';
import { inBackground } from '../../lib/in-background.ts';
import type { Logger } from '../../lib/logger.ts';
import { refusalReason } from '../digest/answered-request.ts';
import { DigestClient, maxRepetitions } from '../digest/digest-client.ts';
import type { EngineLink } from '../engine/engine-link.ts';
import type { SipLimits } from '../engine/sip-limits.ts';
import type { RequestOptions, SipMessage } from '../engine/srf-types.ts';
import { type TransactionResult, transact } from '../legs/transaction.ts';
import type { HopFinder, NextHop } from './dns/next-hops.ts';
import { gatewayName } from './gateway-name.ts';
import { dnsFailure } from './routing.ts';
import {
  authority,
  bracketed,
  gatewayUri,
  nextHopUri,
  placeOf,
  publicContact,
  userPart,
} from './trunk-uris.ts';
import type { Gateway, Trunk } from './trunks.ts';

/**
 * Share of the granted time after which we renew a registration. The rest leaves room for retries.
 */
const renewAfter = 0.8;

/**
 * Longest expiry that we accept. No registrar has a reason to ask for more, and timers can't wait
 * longer than 24 days.
 */
const maxExpiresS = 7 * 86_400;

/** Leaves room for the repetitions with credentials, each of which has the next number. */
const cseqStep = maxRepetitions + 1;

export class Registrations {
  readonly #hops: HopFinder;
  readonly #limits: SipLimits;
  readonly #logger: Logger;
  #trunks: readonly Trunk[] = [];
  #running = new Map<string, Registration>();

  constructor(dependencies: {
    readonly limits: SipLimits;
    readonly logger: Logger;
    readonly hops: HopFinder;
  }) {
    this.#hops = dependencies.hops;
    this.#limits = dependencies.limits;
    this.#logger = dependencies.logger;
  }

  watch(trunks: readonly Trunk[], links: readonly EngineLink[]): void {
    this.close();
    this.#trunks = trunks;
    for (const link of links) this.onUp(link);
  }

  onUp(link: EngineLink): void {
    for (const trunk of this.#trunks) {
      for (const gateway of trunk.gateways) this.#startRegistration(link, trunk, gateway);
    }
  }

  close(): void {
    for (const registration of this.#running.values()) registration.stop();
    this.#running = new Map();
  }

  #startRegistration(link: EngineLink, trunk: Trunk, gateway: Gateway): void {
    const { auth, register } = trunk;
    if (auth === undefined || register === undefined) return;
    const key = `${link.engine} ${trunk.name} ${gatewayName(gateway)}`;
    this.#running.get(key)?.stop();
    const registration = new Registration(link, {
      trunk: { ...trunk, auth, register },
      gateway,
      hops: this.#hops,
      limits: this.#limits,
      logger: this.#logger,
    });
    this.#running.set(key, registration);
  }
}

type RegistrationOptions = {
  readonly trunk: Trunk & Required<Pick<Trunk, 'auth' | 'register'>>;
  readonly gateway: Gateway;
  readonly hops: HopFinder;
  readonly limits: SipLimits;
  readonly logger: Logger;
};

type Answered = Extract<TransactionResult, { readonly kind: 'response' }>;

type Outcome =
  | { readonly kind: 'registered'; readonly expiresS: number }
  /** The registrar responded with 423, because the requested time is too brief. */
  | { readonly kind: 'tooBrief'; readonly minExpiresS: number }
  | {
      readonly kind: 'failed';
      readonly reason: string;
      /** The server didn't respond or doesn't work, so another address may (RFC 3263, 4.3). */
      readonly isServerFault?: true;
    }
  /**
   * The engine rejected the request, and will keep doing so until its configuration or the
   * gateway's changes.
   */
  | { readonly kind: 'impossible'; readonly reason: string }
  /** The engine is gone. Its next link starts a new registration. */
  | { readonly kind: 'lost' };

/**
 * Turns an exception into a failure, which means that the REGISTER is retried as if it had been
 * rejected.
 */
function failureFrom(error: unknown): Outcome {
  return { kind: 'failed', reason: error instanceof Error ? error.message : 'internal error' };
}

class Registration {
  readonly #link: EngineLink;
  readonly #options: RegistrationOptions;
  /** Kept for renewals, so that the last nonce is used again without another challenge. */
  readonly #digest: DigestClient;
  readonly #callId = randomUUID();
  /** Where the registration is. It's renewed there as long as DNS still names that address. */
  #hop: NextHop | undefined;
  #cseq = 1;
  #expiresS: number;
  #state: 'unregistered' | 'registered' | 'stopped' = 'unregistered';
  #timer: NodeJS.Timeout | undefined;

  constructor(link: EngineLink, options: RegistrationOptions) {
    this.#link = link;
    this.#options = options;
    this.#digest = new DigestClient(options.trunk.auth);
    this.#expiresS = options.trunk.register.expiresS;
    this.#registerNow();
  }

  stop(): void {
    this.#state = 'stopped';
    clearTimeout(this.#timer);
  }

  #registerNow(): void {
    inBackground(this.#register(), this.#options.logger, 'registering');
  }

  async #register(): Promise<void> {
    const outcome = await this.#registerAtHops().catch(failureFrom);
    if (this.#state === 'stopped' || outcome.kind === 'lost') return;
    const delayMs = this.#handle(outcome);
    if (delayMs === undefined) return;
    this.#timer = setTimeout(() => this.#registerNow(), delayMs);
    this.#timer.unref();
  }

  /**
   * Logs the outcome and updates the state.
   * @returns the delay before the next REGISTER, or undefined if retrying is pointless until the
   * trunks are reloaded or the engine reconnects
   */
  #handle(outcome: Exclude<Outcome, { kind: 'lost' }>): number | undefined {
    const { trunk, gateway, limits, logger } = this.#options;
    const names = { trunk: trunk.name, gateway: gatewayName(gateway), engine: this.#link.engine };
    switch (outcome.kind) {
      case 'registered':
        if (this.#state !== 'registered') logger.info(names, 'registered');
        this.#state = 'registered';
        return Math.max(outcome.expiresS * 1_000 * renewAfter, limits.registerMinRefreshMs);
      case 'tooBrief':
        this.#expiresS = outcome.minExpiresS;
        return limits.registerMinRefreshMs;
      case 'failed':
        this.#state = 'unregistered';
        logger.warn({ ...names, reason: outcome.reason }, 'not registered');
        return limits.registerRetryMs;
      case 'impossible':
        this.#state = 'unregistered';
        logger.error(
          { ...names, reason: outcome.reason },
          'cannot register with this configuration, and does not retry before a reload',
        );
        return undefined;
    }
  }

  /** Tries the gateway's addresses until one of them responds. */
  async #registerAtHops(): Promise<Outcome> {
    const { trunk, gateway, hops } = this.#options;
    const found = await hops.find(placeOf(trunk, gateway));
    if (found.kind === 'unresolved') {
      return { kind: 'failed', reason: `${dnsFailure}: ${found.reason}` };
    }
    const isCurrent = (hop: NextHop) =>
      this.#hop !== undefined && gatewayUri(hop) === gatewayUri(this.#hop);
    const inOrder = [
      ...found.hops.filter(isCurrent),
      ...found.hops.filter((hop) => !isCurrent(hop)),
    ];
    let outcome: Outcome = { kind: 'failed', reason: 'not sent' };
    for (const hop of inOrder) {
      if (this.#state === 'stopped') return outcome;
      outcome = await this.#sendRegister(hop);
      const isFault = outcome.kind === 'failed' && outcome.isServerFault === true;
      if (outcome.kind === 'lost') return outcome;
      if (!isFault && outcome.kind !== 'impossible') {
        this.#hop = hop;
        hops.welcome(hop);
        return outcome;
      }
      hops.avoid(hop);
    }
    return outcome;
  }

  async #sendRegister(hop: NextHop): Promise<Outcome> {
    const { limits } = this.#options;
    const request = this.#request(hop);
    this.#cseq += cseqStep;
    const wait = {
      until: 'answered',
      timeoutMs: limits.registerTimeoutMs,
      authentication: { client: this.#digest, isWanted: () => this.#state !== 'stopped' },
    } as const;
    const result = await transact(this.#link, request, wait);
    switch (result.kind) {
      case 'response':
        return this.#outcomeOf(result);
      case 'refused': {
        const { reason } = result;
        return isPermanent(reason)
          ? { kind: 'impossible', reason }
          : { kind: 'failed', reason, isServerFault: true };
      }
      case 'timeout':
        return { kind: 'failed', reason: 'no answer', isServerFault: true };
      case 'lost':
        return { kind: 'lost' };
    }
  }

  #outcomeOf({ status, message, byStack, unanswered }: Answered): Outcome {
    if (status < 300) {
      // The registrar may grant less time than we asked for, but never more (section 10.2.1.1).
      const expiresS = Math.min(grantedS(message) ?? this.#expiresS, this.#expiresS);
      return { kind: 'registered', expiresS };
    }
    const minExpiresS = status === 423 ? seconds(message?.get('Min-Expires')) : undefined;
    const isUsable = (wanted: number) => wanted > this.#expiresS && wanted <= maxExpiresS;
    if (minExpiresS !== undefined && isUsable(minExpiresS)) {
      return { kind: 'tooBrief', minExpiresS };
    }
    const isServerFault = byStack === true || status === 503;
    const reason = refusalReason({ reason: String(status) }, unanswered);
    return { kind: 'failed', reason, ...(isServerFault && { isServerFault }) };
  }

  #request(hop: NextHop): RequestOptions {
    const { trunk, gateway } = this.#options;
    const domain = bracketed(trunk.fromDomain ?? gateway.host);
    // A registrar's port belongs in the request URI, but never in From and To (RFC 3261, 19.1.1,
    // table 1).
    const registrar = trunk.fromDomain === undefined ? authority(gateway) : domain;
    const user = userPart(trunk.user ?? trunk.auth.username);
    const transport = hop.transport === 'udp' ? '' : `;transport=${hop.transport}`;
    return {
      method: 'REGISTER',
      uri: `sip:${registrar}`,
      proxy: nextHopUri(trunk, gateway, hop),
      headers: {
        From: `<sip:${user}@${domain}>`,
        To: `<sip:${user}@${domain}>`,
        // The engine replaces `localhost` with its own address.
        Contact: publicContact(trunk, hop.transport, user) ?? `<sip:${user}@localhost${transport}>`,
        'Call-ID': this.#callId,
        CSeq: `${this.#cseq} REGISTER`,
        Expires: String(this.#expiresS),
      },
    };
  }
}

/** Errors that drachtio would return for the same request every time. */
const permanentRefusals = [
  'can not send request to myself',
  'requested protocol/transport not available',
  'invalid request-uri',
];

function isPermanent(reason: string): boolean {
  return permanentRefusals.some((words) => reason.startsWith(words));
}

/**
 * Returns the granted time in seconds. The registrar lists all of the user's contacts, so the
 * shortest time is the safe choice.
 */
function grantedS(message: SipMessage | undefined): number | undefined {
  const contactExpiries = [
    ...(message?.get('Contact') ?? '').matchAll(/;\s*expires\s*=\s*"?(\d{1,9})/gi),
  ];
  if (contactExpiries.length > 0)
    return Math.min(...contactExpiries.map((match) => Number(match[1])));
  return seconds(message?.get('Expires'));
}

function seconds(header: string | undefined): number | undefined {
  const digits = /^\s*(\d{1,9})\b/.exec(header ?? '')?.[1];
  return digits === undefined ? undefined : Number(digits);
}
