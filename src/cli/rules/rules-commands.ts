// Implements `offhook rules`, which manages the account's rule sets and tries them out.

import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { type AppOptions, withGateway } from '../app-session.ts';
import { targetOf } from '../calls/dial-options.ts';
import type { CliContext } from '../cli-context.ts';
import { CliError } from '../cli-error.ts';
import type { DialoutCheck, RuleSetView } from '../gateway-client.ts';

export type ListRulesOptions = AppOptions & { readonly json?: boolean };
export type CheckOptions = AppOptions & {
  readonly bot: string;
  readonly caller: string;
  readonly rules?: string;
  readonly timeZone?: string;
  readonly campaign?: string;
  readonly json?: boolean;
};

export async function setRules(
  context: CliContext,
  name: string,
  path: string,
  options: AppOptions,
): Promise<void> {
  const document = await readDocument(path);
  await withGateway(context, options, async ({ ruleSets }) => {
    context.print(formatRuleSet(await ruleSets.put(name, document)));
  });
}

async function readDocument(path: string): Promise<object> {
  const content = await (path === '-' ? text(process.stdin) : readFile(path, 'utf8')).catch(
    (error: unknown) => {
      throw new CliError(`${path} cannot be read`, { cause: error });
    },
  );
  const place = path === '-' ? 'standard input' : path;
  let document: unknown;
  try {
    document = JSON.parse(content);
  } catch (error) {
    throw new CliError(`${place} is not JSON`, { cause: error });
  }
  if (typeof document === 'object' && document !== null) return document;
  throw new CliError(`${place} is not a JSON object`);
}

export async function listRules(context: CliContext, options: ListRulesOptions): Promise<void> {
  await withGateway(context, options, async (client) => {
    const { ruleSets } = await client.ruleSets.list();
    for (const ruleSet of ruleSets) {
      context.print(options.json === true ? JSON.stringify(ruleSet) : formatRuleSet(ruleSet));
    }
    if (ruleSets.length === 0) context.note('No rule sets.');
  });
}

/** Prints only the document, so that it can be edited and stored again. */
export async function showRules(
  context: CliContext,
  name: string,
  version: string | undefined,
  options: AppOptions,
): Promise<void> {
  await withGateway(context, options, async ({ ruleSets }) => {
    const ruleSet = await ruleSets.find(name, version);
    context.print(JSON.stringify(ruleSet.document, undefined, 2));
    context.note(formatRuleSet(ruleSet));
  });
}

export async function removeRules(
  context: CliContext,
  name: string,
  options: AppOptions,
): Promise<void> {
  await withGateway(context, options, async ({ ruleSets }) => {
    await ruleSets.remove(name);
    context.print(`removed ${name}`);
  });
}

export async function checkRules(
  context: CliContext,
  number: string,
  options: CheckOptions,
): Promise<void> {
  await withGateway(context, options, async (client) => {
    const { rules, timeZone, campaign } = options;
    const check = await client.bot(options.bot).check({
      target: targetOf(number),
      caller: options.caller,
      // The check is about the number. A request that lacks these members would be rejected.
      machineDetection: 'detect',
      timeoutInMs: 180_000,
      consent: { basis: 'written', at: new Date().toISOString() },
      ...(rules === undefined ? {} : { rules }),
      ...(timeZone === undefined ? {} : { timeZone }),
      ...(campaign === undefined ? {} : { campaign }),
    });
    context.print(options.json === true ? JSON.stringify(check) : formatCheck(check));
  });
}

function formatRuleSet({ name, version, changedAt, changedByApp }: RuleSetView): string {
  return `${name}  version ${version}  ${changedAt}  ${changedByApp}`;
}

/** E.g. `not permitted: hours, not before 2026-11-25T13:00:00.000Z (default 3; Europe/Berlin)` */
function formatCheck(check: DialoutCheck): string {
  const { permitted, rule, notBefore, ruleSet, ruleSetVersion, timeZones } = check;
  const when = notBefore === undefined ? '' : `, not before ${notBefore}`;
  const decision = permitted ? 'permitted' : `not permitted: ${rule}${when}`;
  const under = ruleSet === undefined ? 'no rule set' : `${ruleSet} ${ruleSetVersion}`;
  const where = timeZones.length === 0 ? 'time zone unknown' : timeZones.join(', ');
  return `${decision} (${under}; ${where})`;
}
