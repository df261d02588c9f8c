// Builds a dial-out request from the options of `offhook call`. The gateway validates the request,
// so here we only reject options that the gateway would silently ignore.

import { timersSchema } from '../../api/dialout/dialout-schema.ts';
import { sandboxNumbers } from '../../embedded/sandbox/sandbox-numbers.ts';
import { parseDurationS } from '../../lib/durations.ts';
import { isAssigned, readNational } from '../../lib/phone-numbers.ts';
import { CliError } from '../cli-error.ts';

export type DialOptions = {
  readonly amd: string;
  readonly caller: string;
  readonly callerName?: string;
  /** `Name: value` */
  readonly sipHeader?: readonly string[];
  readonly identity?: string;
  readonly trunk?: string;
  readonly timeout?: string;
  readonly maxDuration?: string;
  readonly metadata?: string;
  readonly campaign?: string;
  readonly rules?: string;
  readonly timeZone?: string;
  /** Basis of the consent, e.g. `written`. */
  readonly consent?: string;
  /** When the consent was given. Default: now. */
  readonly consentAt?: string;
  /** `Name: value` */
  readonly header?: readonly string[];
  /** `name=ms` */
  readonly timer?: readonly string[];
  readonly thresholdWordCount?: string;
  /** `fast` or `careful` */
  readonly detection?: string;
  /** Event types and families, separated by commas. */
  readonly notifyEvents?: string;
  readonly streamUrl?: string;
  readonly streamConnect?: string;
  /** `name=value` */
  readonly streamParameter?: readonly string[];
  readonly voicemail?: string;
  readonly ifNoBeep?: string;
  readonly screening?: string;
  /** JSON, as in a request. False if `--no-recording` is given. */
  readonly recording?: string | boolean;
  readonly optOutKey?: string;
  readonly optOutSound?: string;
  readonly bridge?: string;
  readonly bridgeOn?: string;
  readonly bridgeMode?: string;
  readonly bridgeTimeout?: string;
  readonly bridgeCaller?: string;
  readonly bridgeCallerName?: string;
  /** False if `--no-stream` is given. */
  readonly stream?: boolean;
};

export function dialRequest(
  target: string,
  notifyurl: string | undefined,
  options: DialOptions,
): Readonly<Record<string, unknown>> {
  const { amd, caller, trunk, timeout, metadata, header = [], timer = [] } = options;
  const { thresholdWordCount: words, maxDuration, sipHeader = [] } = options;
  const members = {
    target: targetOf(target),
    caller,
    callerName: options.callerName,
    headers: sipHeader.length === 0 ? undefined : readHeaders(sipHeader, '--sip-header'),
    identity: options.identity,
    machineDetection: amd,
    detection: options.detection,
    notifyurl,
    notifyEvents: options.notifyEvents?.split(',').map((name) => name.trim()),
    trunk,
    timeoutInMs: timeout === undefined ? undefined : readNumber('--timeout', timeout),
    maxDurationMs: maxDuration === undefined ? undefined : readDurationMs(maxDuration),
    metadata: metadata === undefined ? undefined : readMetadata(metadata),
    campaign: options.campaign,
    rules: options.rules,
    timeZone: options.timeZone,
    consent: buildConsent(options),
    notifyHeaders: header.length === 0 ? undefined : readHeaders(header),
    timers: timer.length === 0 ? undefined : readTimers(timer),
    thresholdWordCount:
      words === undefined ? undefined : readNumber('--threshold-word-count', words),
    stream: buildStream(options),
    voicemail: buildVoicemail(options),
    screening: options.screening === undefined ? undefined : { play: options.screening },
    recording: readRecording(options.recording),
    optOutKey: options.optOutKey,
    optOutSound: options.optOutSound,
    bridge: buildBridge(options),
  };
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}

/**
 * Reads `--recording`, which the gateway checks.
 *
 * @returns undefined if the option isn't given
 */
export function readRecording(text: string | boolean | undefined): unknown {
  if (typeof text !== 'string') return text;
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new CliError('--recording must be JSON, e.g. \'{"from":"person"}\'.', { cause: error });
  }
}

function buildConsent({ consent: basis, consentAt }: DialOptions) {
  if (basis !== undefined) return { basis, at: consentAt ?? new Date().toISOString() };
  if (consentAt !== undefined) throw new CliError('--consent-at needs --consent');
  return undefined;
}

/**
 * Returns a target URI. Text that is already a URI stays unchanged, but sandbox names and numbers
 * with a country code are converted.
 *
 * @throws CliError if the text isn't a target
 */
export function targetOf(text: string): string {
  if (/^(tel|sip):/i.test(text)) return text;
  const sandbox = sandboxNumbers.find(({ name }) => name === text);
  if (sandbox !== undefined) return `tel:${sandbox.number}`;
  const number = text.replaceAll(' ', '');
  if (/^\+[\d\-.()]+(?:;ext=\d+)?$/.test(number)) return `tel:${number}`;
  if (/^[\d\-.()]+$/.test(number)) {
    throw new CliError(`"${text}" has no country code: ${adviceFor(number.replaceAll(/\D/g, ''))}`);
  }
  throw new CliError(
    `"${text}" is not a target. Use tel:+15551234567, sip:user@host, or a sandbox name: ${sandboxNumbers.map(({ name }) => name).join(', ')}`,
  );
}

/**
 * Explains how to write a number. We can't tell the country from the number alone. For example,
 * 2025550110 starts with Egypt's country code.
 */
function adviceFor(digits: string): string {
  const american = readNational(digits, 'US');
  // North American area codes never start with 0 or 1, so 0612345678 is from a different country.
  if (american !== undefined && /^1[2-9]/.test(american.digits)) {
    return `write +${american.digits} for a North American number, otherwise + and its country code`;
  }
  return isAssigned(digits)
    ? `write +${digits}`
    : 'write it with + and its country code, e.g. +12025550110';
}

/** Reads timers. We reject unknown names because the gateway would silently ignore them. */
export function readTimers(texts: readonly string[]): Readonly<Record<string, number>> {
  const timers: Record<string, number> = {};
  for (const text of texts) {
    const [, name = '', ms = ''] = /^(\w+)=(\d+)$/.exec(text) ?? [];
    if (!Object.hasOwn(timersSchema.shape, name)) {
      const names = Object.keys(timersSchema.shape).join(', ');
      throw new CliError(
        `--timer ${text}: must be name=milliseconds, where name is one of ${names}`,
      );
    }
    timers[name] = Number(ms);
  }
  return timers;
}

/**
 * Builds the `stream` field.
 *
 * @returns undefined for the bot's registered stream, or null for no stream
 */
function buildStream(options: DialOptions): Readonly<Record<string, unknown>> | null | undefined {
  const { streamUrl: url, streamConnect: connect, streamParameter = [], stream = true } = options;
  const parameters =
    streamParameter.length === 0
      ? undefined
      : readParameters('--stream-parameter', streamParameter);
  const given = Object.entries({ url, connect, parameters }).filter(
    ([, value]) => value !== undefined,
  );
  if (stream) return given.length === 0 ? undefined : Object.fromEntries(given);
  if (given.length > 0)
    throw new CliError('--no-stream cannot be combined with other stream options.');
  return null;
}

function buildVoicemail({ voicemail: play, ifNoBeep }: DialOptions) {
  if (play !== undefined) return { play, ...(ifNoBeep === undefined ? {} : { ifNoBeep }) };
  if (ifNoBeep !== undefined) throw new CliError('--if-no-beep requires --voicemail.');
  return undefined;
}

function buildBridge(options: DialOptions): Readonly<Record<string, unknown>> | undefined {
  const { bridge, bridgeOn: on, bridgeMode: mode, bridgeTimeout, bridgeCaller: caller } = options;
  const timeoutMs =
    bridgeTimeout === undefined ? undefined : readNumber('--bridge-timeout', bridgeTimeout);
  const callerName = options.bridgeCallerName;
  const given = Object.entries({ on, mode, timeoutMs, caller, callerName }).filter(
    ([, value]) => value !== undefined,
  );
  if (bridge !== undefined) return { to: targetOf(bridge), ...Object.fromEntries(given) };
  if (given.length > 0) throw new CliError('--bridge-… options require --bridge.');
  return undefined;
}

export function readParameters(
  option: string,
  texts: readonly string[],
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    texts.map((text) => {
      const at = text.indexOf('=');
      if (at < 1) throw new CliError(`${option} ${text}: must be name=value`);
      return [text.slice(0, at), text.slice(at + 1)];
    }),
  );
}

export function readNumber(option: string, text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new CliError(`${option} must be a number`);
  return Number(text);
}

/** Reads a duration, either in milliseconds, like a call's other options, or with a unit. */
function readDurationMs(text: string): number {
  const isMs = /^\d{1,10}$/.test(text);
  const durationMs = isMs ? Number(text) : (parseDurationS(text) ?? Number.NaN) * 1_000;
  if (Number.isNaN(durationMs)) {
    throw new CliError('--max-duration must be milliseconds, or e.g. 90s or 10m');
  }
  return durationMs;
}

function readMetadata(text: string): unknown {
  const example = `e.g. --metadata '{"customer":"4711"}'`;
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  } catch (error) {
    throw new CliError(`--metadata is not JSON; ${example}`, { cause: error });
  }
  throw new CliError(`--metadata must be a JSON object, ${example}`);
}

/** Reads headers of the form `Name: value`. */
export function readHeaders(
  texts: readonly string[],
  option = '--header',
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    texts.map((text) => {
      const at = text.indexOf(':');
      if (at < 1) throw new CliError(`${option} ${text}: must be 'Name: value'`);
      return [text.slice(0, at).trim(), text.slice(at + 1).trim()];
    }),
  );
}
