// Decides where to send a call: through one of a trunk's gateways, or directly to the host in a
// `sip:` target, which must then be in the allowed networks. That decision is made twice: when the
// API receives the request, which lets it reject bad requests with 400, and again when we dial the
// call. Host names are only resolved the second time, so that the INVITE goes to exactly the
// address that we've checked.

import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import type { DialTarget } from '../../calls/call-types.ts';
import type { TrunkLimits } from '../../calls/dialout-ports.ts';
import type { PlaceRequest } from '../../calls/ports.ts';
import { uriOfTarget } from '../../calls/target/dial-target.ts';
import { within } from '../../lib/within.ts';
import type { HopFinder, NextHop, NextHops } from './dns/next-hops.ts';
import { gatewayName } from './gateway-name.ts';
import { type Dice, orderGateways } from './gateway-order.ts';
import { fromHeader, nameAddress } from './name-address.ts';
import {
  authority,
  bracketed,
  domainOf,
  fromHost,
  gatewayUri,
  nextHopUri,
  placeOf,
  publicContact,
  transportParameter,
  userPart,
} from './trunk-uris.ts';
import {
  type Gateway,
  isOpenTo,
  type SessionTimer,
  type Trunk,
  type TrunkDirectory,
} from './trunks.ts';
import { calleeUser, callerUser } from './users.ts';

type SipTarget = Extract<DialTarget, { kind: 'sip' }>;

export type Credentials = { readonly username: string; readonly password: string };

/** Everything that we need to know about the route in order to build an INVITE. */
export type Route = {
  readonly requestUri: string;
  /** SIP URI of the next hop. Default: the host in the request URI. */
  readonly nextHop?: string;
  readonly from: string;
  readonly to: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Headers, in lower case, that an application may replace. */
  readonly passHeaders?: readonly string[];
  readonly credentials?: Credentials;
  /** Session timer to request. */
  readonly sessionTimer?: SessionTimer;
  /**
   * Name shown to people and in metrics: host:port, followed by the transport unless that's UDP.
   */
  readonly gateway: string;
  /** Undefined for a direct call. */
  readonly trunk?: string;
  /** Default: the engine's own address. */
  readonly contact?: string;
  /** The address that DNS named for the gateway. Undefined if no look-up was needed. */
  readonly hop?: NextHop;
  /** The gateway has further addresses, which the call tries next. */
  readonly hasMoreHops?: true;
  /** Why the gateway's name doesn't resolve. Such a route fails without an INVITE. */
  readonly unresolved?: string;
};

export type RouteResult =
  /** The routes, in the order in which to try them. */
  | { readonly ok: true; readonly routes: readonly [Route, ...Route[]] }
  | { readonly ok: false; readonly reason: string };

export type RouteRequest = Pick<
  PlaceRequest,
  'target' | 'trunk' | 'caller' | 'callerName' | 'identity'
>;

export type ResolveHost = (host: string) => Promise<readonly string[]>;

/** Result of the check before we accept a call. `trunk` is omitted for a direct call. */
export type RoutePlan =
  | { readonly ok: true; readonly trunk?: string }
  | {
      readonly ok: false;
      readonly field: 'target' | 'trunk' | 'caller';
      readonly message: string;
    };

export type Router = {
  /**
   * Checks a request. Without an account, the request may use any trunk, and the general default
   * applies. Without a caller, we don't check whether the trunk can rewrite it.
   */
  plan(
    target: DialTarget,
    trunk: string | undefined,
    accountId?: string,
    caller?: string,
  ): RoutePlan;
  resolve(request: RouteRequest): Promise<RouteResult>;
  /**
   * Returns the Refer-To to send to the far end of a call over this trunk. Numbers are formatted
   * the way the trunk's carrier expects them. A `sip:` target stays as requested.
   */
  referTo(target: DialTarget, trunk: string | undefined): string;
  /** Returns true if an application may set this header on calls over the trunk. */
  passes(trunk: string, headerName: string): boolean;
  /**
   * Returns the limits of the trunk that `plan` named.
   * @returns undefined if the trunk sets no limits or no longer exists
   */
  limitsOf(trunk: string): TrunkLimits | undefined;
};

export function createRouter(options: {
  readonly trunks: TrunkDirectory;
  readonly allowedNetworks: readonly string[];
  readonly resolveTimeoutMs?: number;
  readonly resolveHost?: ResolveHost;
  readonly isUp?: (trunk: string, gateway: string) => boolean;
  readonly dice?: Dice;
  /** Resolves gateways. Default: the engine resolves their names. */
  readonly hops?: Pick<HopFinder, 'find'>;
}): Router {
  const { trunks } = options;
  const networks = options.allowedNetworks.map((cidr) => ipaddr.parseCIDR(cidr));
  const lookUp = options.resolveHost ?? addressesOf;
  const resolveHost = (host: string) =>
    withTimeout(lookUp(host), options.resolveTimeoutMs ?? 5_000);

  const defaultOf = (accountId: string | undefined) =>
    accountId === undefined ? trunks.default : trunks.defaultOf(accountId);

  /**
   * Finds a trunk by name. If the account isn't allowed to use the trunk, we pretend that the trunk
   * doesn't exist.
   */
  const named = (name: string, accountId: string | undefined) => {
    const trunk = trunks.get(name);
    const isOpen = trunk !== undefined && (accountId === undefined || isOpenTo(trunk, accountId));
    return isOpen ? trunk : undefined;
  };

  const plan: Router['plan'] = (target, trunkName, accountId, caller) => {
    if (trunkName === undefined && target.kind === 'sip') {
      return planDirect(withoutBrackets(target.host), networks);
    }
    const trunk = trunkName === undefined ? defaultOf(accountId) : named(trunkName, accountId);
    if (trunk !== undefined) return planThrough(trunk, target, caller);
    const message =
      trunkName === undefined ? 'no trunk is configured' : `there is no trunk named ${trunkName}`;
    return { ok: false, field: 'trunk', message };
  };

  const resolve: Router['resolve'] = async ({ target, trunk: trunkName, ...from }) => {
    if (trunkName === undefined && target.kind === 'sip') {
      return resolveDirect(target, from, networks, resolveHost);
    }
    const trunk = trunkName === undefined ? trunks.default : trunks.get(trunkName);
    if (trunk === undefined) return { ok: false, reason: 'no such trunk' };
    const unusable = planThrough(trunk, target, from.caller);
    if (!unusable.ok) return { ok: false, reason: `the ${unusable.field} ${unusable.message}` };
    const isUp = (gateway: Gateway) => options.isUp?.(trunk.name, gatewayName(gateway)) ?? true;
    const gateways = orderGateways(trunk.gateways, isUp, options.dice ?? Math.random);
    const routes = await Promise.all(
      gateways.map(async (gateway) => {
        const hops = await options.hops?.find(placeOf(trunk, gateway));
        return routesThrough(trunk, gateway, hops, routeThrough(trunk, gateway, target, from));
      }),
    );
    const [first, ...others] = routes.flat().slice(0, maxRoutes);
    return first === undefined
      ? { ok: false, reason: 'the trunk has no gateway' }
      : { ok: true, routes: [first, ...others] };
  };

  const referTo: Router['referTo'] = (target, trunkName) => {
    if (target.kind === 'sip') return `<sip:${userPart(target.user)}@${authority(target)}>`;
    const trunk = trunkName === undefined ? undefined : trunks.get(trunkName);
    const gateway = trunk?.gateways[0];
    const callee = trunk === undefined ? undefined : calleeUser(trunk, target);
    if (trunk === undefined || callee === undefined || gateway === undefined) {
      return `<${uriOfTarget(target)}>`;
    }
    return `<sip:${userPart(callee.user)}@${domainOf(trunk, gateway)}${callee.parameters}>`;
  };

  const passes: Router['passes'] = (name, headerName) =>
    trunks.get(name)?.passHeaders.includes(headerName.toLowerCase()) === true;

  return { plan, resolve, referTo, passes, limitsOf: (name) => trunks.get(name)?.limits };
}

/** Checks that the trunk's rules leave user parts that we can dial. */
function planThrough(trunk: Trunk, target: DialTarget, caller: string | undefined): RoutePlan {
  const message = `cannot be dialled: the rewrite rules of trunk ${trunk.name} turn it into something that is no user part of a SIP URI`;
  if (target.kind !== 'sip' && calleeUser(trunk, target) === undefined) {
    return { ok: false, field: 'target', message };
  }
  if (caller !== undefined && callerUser(trunk, caller) === undefined) {
    return { ok: false, field: 'caller', message };
  }
  return { ok: true, trunk: trunk.name };
}

const notAllowedReason = 'the host is not in the allowed networks';

/**
 * Checks a direct call. We don't resolve host names until we dial, so at this point a host name
 * passes as long as any network is allowed.
 */
function planDirect(host: string, networks: readonly Network[]): RoutePlan {
  const mayPass = isIP(host) === 0 ? networks.length > 0 : isAllowed(host, networks);
  if (mayPass) return { ok: true };
  const message = `${host} is not in SIP_ALLOWED_NETWORKS; name a trunk to carry the call`;
  return { ok: false, field: 'target', message };
}

/** Resolves a direct call to the first allowed address of its host. */
async function resolveDirect(
  requested: SipTarget,
  from: Caller,
  networks: readonly Network[],
  resolveHost: (host: string) => Promise<readonly string[] | undefined>,
): Promise<RouteResult> {
  const target = { ...requested, host: withoutBrackets(requested.host) };
  if (networks.length === 0) return { ok: false, reason: notAllowedReason };
  const isLiteral = isIP(target.host) !== 0;
  const addresses = isLiteral ? [target.host] : await resolveHost(target.host);
  if (addresses === undefined) return { ok: false, reason: 'the host does not resolve' };
  // Dial only the address that we've checked, because the name may resolve to a different address
  // the next time.
  const address = addresses.find((candidate) => isAllowed(candidate, networks));
  return address === undefined
    ? { ok: false, reason: notAllowedReason }
    : { ok: true, routes: [routeTo(target, address, from)] };
}

/** Begins the reason of a failure that DNS caused, as the engines name it too. */
export const dnsFailure = 'DNS Error';

/** A call tries at most this many addresses. Its ring time-out allows far fewer. */
const maxRoutes = 32;

/** Repeats a gateway's route for each of its addresses. */
function routesThrough(
  trunk: Trunk,
  gateway: Gateway,
  hops: NextHops | undefined,
  route: Route,
): readonly Route[] {
  if (hops === undefined) return [route];
  if (hops.kind === 'unresolved') return [{ ...route, unresolved: hops.reason }];
  const { host } = placeOf(trunk, gateway);
  return hops.hops.map((hop, index) => {
    const uri = nextHopUri(trunk, gateway, hop);
    const isImplied = route.nextHop === undefined && uri === gatewayUri(gateway);
    return {
      ...route,
      ...(!isImplied && { nextHop: uri }),
      ...contactOf(trunk, hop),
      ...(hop.host !== host && { hop }),
      ...(index < hops.hops.length - 1 && { hasMoreHops: true }),
    };
  });
}

function contactOf(trunk: Trunk, { transport }: NextHop): Pick<Route, 'contact'> {
  const contact = publicContact(trunk, transport);
  return contact === undefined ? {} : { contact };
}

/** The caller that the request names. */
type Caller = Pick<RouteRequest, 'caller' | 'callerName' | 'identity'>;

function routeThrough(
  trunk: Trunk,
  gateway: Gateway,
  target: DialTarget,
  requested: Caller,
): Route {
  const caller = callerUser(trunk, requested.caller) ?? requested.caller;
  const from = { ...requested, caller };
  const shared = {
    from: fromHeader(
      from.callerName,
      userPart(trunk.user ?? from.caller),
      fromHost(trunk, gateway),
    ),
    headers: headersOf(trunk, gateway, from),
    ...(trunk.passHeaders.length > 0 && { passHeaders: trunk.passHeaders }),
    ...(trunk.auth !== undefined && { credentials: trunk.auth }),
    ...(trunk.sessionTimer !== undefined && { sessionTimer: trunk.sessionTimer }),
    ...contactOf(trunk, gateway),
    gateway: gatewayName(gateway),
    trunk: trunk.name,
  };
  const nextHop = nextHopUri(trunk, gateway);
  if (target.kind === 'sip') {
    const uri = `sip:${userPart(target.user)}@${authority(target)}`;
    return { ...shared, requestUri: uri, to: `<${uri}>`, nextHop };
  }
  const { user, parameters } = calleeUser(trunk, target) ?? { user: '', parameters: '' };
  const domain = domainOf(trunk, gateway);
  const uri = `sip:${userPart(user)}@${domain}${parameters}`;
  // The parameter is about the path to the host in the URI, so it's only right for the gateway.
  const isDirect = trunk.outboundProxy === undefined && domain === authority(gateway);
  return {
    ...shared,
    requestUri: isDirect ? `${uri}${transportParameter(gateway)}` : uri,
    to: `<${uri}>`,
    ...((!isDirect || nextHop !== gatewayUri(gateway)) && { nextHop }),
  };
}

/**
 * Adds the caller's asserted identity, for carriers that trust this gateway (RFC 3325, section
 * 9.1), and the request's Identity header, which replaces the trunk's.
 */
function headersOf(trunk: Trunk, gateway: Gateway, from: Caller): Route['headers'] {
  const { assertedIdentity } = trunk;
  const headers = withIdentity(trunk.headers, from.identity);
  if (assertedIdentity === undefined) return headers;
  return { ...headers, 'P-Asserted-Identity': assertedHeader(trunk, gateway, from) };
}

function assertedHeader(
  { assertedIdentity = 'caller', fromDomain }: Trunk,
  gateway: Gateway,
  { caller, callerName }: Caller,
): string {
  if (assertedIdentity !== 'caller') return nameAddress(undefined, assertedIdentity);
  const uri = `sip:${userPart(caller)}@${bracketed(fromDomain ?? gateway.host)}`;
  return nameAddress(callerName, uri);
}

/** Replaces a trunk's Identity header in any spelling, because RFC 8224 signs for one call. */
function withIdentity(headers: Route['headers'], identity: string | undefined): Route['headers'] {
  if (identity === undefined) return headers;
  const others = Object.entries(headers).filter(([name]) => name.toLowerCase() !== 'identity');
  return { ...Object.fromEntries(others), Identity: identity };
}

function routeTo(target: SipTarget, address: string, from: Caller): Route {
  const uri = `sip:${userPart(target.user)}@${authority(target)}`;
  const port = target.port ?? 5060;
  return {
    requestUri: uri,
    to: `<${uri}>`,
    from: fromHeader(from.callerName, userPart(from.caller), undefined),
    headers: withIdentity({}, from.identity),
    gateway: authority({ host: address, port }),
    ...(address !== target.host && { nextHop: `sip:${authority({ host: address, port })}` }),
  };
}

/** Removes the brackets around an IPv6 address in a URI. */
function withoutBrackets(host: string): string {
  return host.replace(/^\[(.*)\]$/, '$1');
}

type Network = [ipaddr.IPv4 | ipaddr.IPv6, number];

function isAllowed(address: string, networks: readonly Network[]): boolean {
  if (!ipaddr.isValid(address)) return false;
  // `process` turns `::ffff:10.0.0.1` into 10.0.0.1.
  const parsed = ipaddr.process(address);
  return networks.some(
    ([network, bits]) => network.kind() === parsed.kind() && parsed.match(network, bits),
  );
}

async function addressesOf(host: string): Promise<readonly string[]> {
  const found = await lookup(host, { all: true });
  return found.map((entry) => entry.address);
}

/** Resolves to undefined if the look-up fails or the time-out expires. */
function withTimeout<Found>(
  pending: Promise<Found>,
  timeoutMs: number,
): Promise<Found | undefined> {
  const found = pending.catch(() => undefined);
  return within(found, timeoutMs);
}
