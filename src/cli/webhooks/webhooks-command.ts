// Implements `offhook webhooks test`, which tests a notification receiver, advises what to fix, and
// prints a score.

import { receiverCheck } from '../../checks/receiver.ts';
import { type CliContext, readDevApp } from '../cli-context.ts';
import { CliError } from '../cli-error.ts';
import type { Judgement } from './judgements.ts';
import { type ReceiverCheck, receiverChecks } from './receiver-checks.ts';
import { ReceiverConnection } from './receiver-connection.ts';

export type WebhooksTestOptions = {
  readonly secret?: string;
  readonly minScore: string;
  readonly strict?: boolean;
  readonly json?: boolean;
};

type Result = Judgement & Pick<ReceiverCheck, 'name' | 'points'>;

/**
 * Tests the receiver and prints the results. The receiver may have a public address, or an address
 * in `allowedNetworks`.
 *
 * @throws CliError if the receiver is unreachable or its score is too low
 */
export async function testReceiver(
  context: CliContext,
  allowedNetworks: readonly string[],
  url: string,
  options: WebhooksTestOptions,
): Promise<void> {
  const minScore = parseScore(options.minScore);
  const secret = options.secret ?? (await readDevApp(context)).webhookSecret;
  const reached = await receiverCheck(url, allowedNetworks).run();
  if (reached.state === 'failed') throw new CliError(reached.detail);
  const receiver = new ReceiverConnection(url, secret);
  try {
    const results = await runReceiverChecks(receiver, (result) =>
      context.print(options.json === true ? asJson(result) : asLine(result)),
    );
    const score = scoreReceiver(results, options.strict === true);
    const { slowestMs } = receiver;
    if (options.json === true) context.print(JSON.stringify({ url, score, slowestMs }));
    else context.print(`score ${score} of 100; the slowest response took ${slowestMs} ms`);
    if (score < minScore) throw new CliError(`${url} scores ${score}, less than ${minScore}`);
  } finally {
    await receiver.close();
  }
}

/** Runs all checks, but stops after the first check if the receiver is unreachable. */
export async function runReceiverChecks(
  receiver: ReceiverConnection,
  onResult: (result: Result) => void,
): Promise<readonly Result[]> {
  const results: Result[] = [];
  for (const check of receiverChecks) {
    const judgement = await check.run(receiver);
    const result = { name: check.name, points: check.points, ...judgement };
    results.push(result);
    onResult(result);
    if (results.length === 1 && judgement.isUnreachable === true) break;
  }
  return results;
}

/**
 * Returns a score from 0 to 100. We round down, so a receiver only scores 100 if it passes every
 * check. If `isStrict` is set, unseen results count as failed. Otherwise we ignore them. A receiver
 * that doesn't accept any status scores 0, because rejecting everything shouldn't earn any points.
 */
export function scoreReceiver(results: readonly Result[], isStrict: boolean): number {
  const takesNothing = !results.some(
    ({ name, state }) => name.startsWith('status ') && state === 'passed',
  );
  if (takesNothing) return 0;
  const counted = results.filter(({ state }) => isStrict || state !== 'unseen');
  const sum = (of: readonly Result[]) => of.reduce((total, { points }) => total + points, 0);
  return Math.floor((100 * sum(counted.filter(({ state }) => state === 'passed'))) / sum(counted));
}

const marks = { passed: 'ok', failed: 'FAILED', unseen: 'unseen' } as const;

function asLine({ name, state, detail, mend }: Result): string {
  const line = `${marks[state].padEnd(6)}  ${name.padEnd(24)}  ${detail}`;
  return mend === undefined ? line : `${line}\n        → ${mend}`;
}

function asJson({ name, state, points, detail, mend }: Result): string {
  return JSON.stringify({
    check: name,
    state,
    points,
    detail,
    ...(mend === undefined ? {} : { mend }),
  });
}

function parseScore(text: string): number {
  const score = Number(text);
  if (/^\d+$/.test(text) && score <= 100) return score;
  throw new CliError('--min-score must be 0 to 100');
}
