// Implements `offhook suppressions`, which manages the numbers that may not be called.

import { createReadStream } from 'node:fs';
import { type AppOptions, withGateway } from '../app-session.ts';
import type { CliContext } from '../cli-context.ts';
import { CliError } from '../cli-error.ts';
import type { ImportType, SuppressionImport, SuppressionView } from '../gateway-client.ts';

export type AddOptions = AppOptions & {
  readonly reason: string;
  readonly source: string;
  readonly until?: string;
};
export type PrintOptions = AppOptions & { readonly json?: boolean };

export async function addSuppression(
  context: CliContext,
  number: string,
  { app, ...body }: AddOptions,
): Promise<void> {
  await withGateway(context, actsAs(app), async ({ suppressions }) => {
    const { left, ...stored } = await suppressions.put(number, body);
    context.print(formatSuppression(stored));
    noteLeft(context, left);
  });
}

export async function removeSuppression(
  context: CliContext,
  number: string,
  options: AppOptions,
): Promise<void> {
  await withGateway(context, options, async ({ suppressions }) => {
    context.print(`removed ${(await suppressions.remove(number)).number}`);
  });
}

export async function listSuppressions(context: CliContext, options: PrintOptions): Promise<void> {
  const format = options.json === true ? JSON.stringify : formatSuppression;
  await withGateway(context, options, async (client) => {
    let cursor: string | undefined;
    let listed = 0;
    do {
      const page = await client.suppressions.list(cursor);
      for (const suppression of page.suppressions) context.print(format(suppression));
      listed += page.suppressions.length;
      cursor = page.nextCursor;
    } while (cursor !== undefined && !context.interrupted.aborted);
    if (listed === 0) context.note('No suppressed numbers.');
  });
}

export async function checkSuppressions(
  context: CliContext,
  numbers: readonly string[],
  options: PrintOptions,
): Promise<void> {
  await withGateway(context, options, async (client) => {
    const { results } = await client.suppressions.check(numbers);
    for (const result of results) {
      const { number, suppressed, reason, until } = result;
      const state = suppressed ? `suppressed: ${reason}${describeUntil(until)}` : 'not suppressed';
      context.print(options.json === true ? JSON.stringify(result) : `${number}  ${state}`);
    }
  });
}

/** @throws CliError if lines are wrong, after the others have been stored */
export async function importSuppressions(
  context: CliContext,
  path: string,
  options: PrintOptions,
): Promise<void> {
  const { type, parts } = await openImport(path);
  await withGateway(context, options, async (client) => {
    const result = await client.suppressions.import(type, parts, context.interrupted);
    const { accepted, replaced, wrongTotal } = result;
    for (const { line, message } of result.wrong) context.note(`line ${line}: ${message}`);
    noteLeft(context, result.left);
    context.print(
      options.json === true
        ? JSON.stringify(result)
        : `accepted ${accepted} (replaced ${replaced}), wrong ${wrongTotal}`,
    );
    if (wrongTotal > 0) throw new CliError(describeWrong(result));
  });
}

function describeWrong({ wrong, wrongTotal }: SuppressionImport): string {
  const shown = wrong.length < wrongTotal ? ` The first ${wrong.length} are listed.` : '';
  return `${wrongTotal} of the lines are wrong and were not stored.${shown}`;
}

type OpenedImport = { readonly type: ImportType; readonly parts: AsyncIterable<Uint8Array> };

/** Reads the beginning of a file to find out what it contains. Its length doesn't matter. */
async function openImport(path: string): Promise<OpenedImport> {
  const file: AsyncIterable<Uint8Array> = path === '-' ? process.stdin : createReadStream(path);
  const chunks = file[Symbol.asyncIterator]();
  const begun: Uint8Array[] = [];
  let first: number | undefined;
  while (first === undefined) {
    const next = await chunks.next().catch((error: unknown) => {
      throw new CliError(`${path} cannot be read`, { cause: error });
    });
    if (next.done === true) break;
    begun.push(next.value);
    first = next.value.find((byte) => !skippedBytes.has(byte));
  }
  return {
    type: first === openingBrace ? 'application/x-ndjson' : 'text/csv',
    parts: joined(begun, chunks),
  };
}

const openingBrace = 0x7b;
/** White space, and the three bytes of a byte order mark. */
const skippedBytes: ReadonlySet<number> = new Set([0x20, 0x09, 0x0d, 0x0a, 0xef, 0xbb, 0xbf]);

async function* joined(
  begun: readonly Uint8Array[],
  rest: AsyncIterator<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  yield* begun;
  for (let next = await rest.next(); next.done !== true; next = await rest.next()) {
    yield next.value;
  }
}

function actsAs(app: string | undefined): AppOptions {
  return app === undefined ? {} : { app };
}

function noteLeft(context: CliContext, left: readonly string[] = []): void {
  if (left.length > 0) context.note(`These calls may still ring: ${left.join(', ')}`);
}

/** E.g. `+12025550110  opt-out  until 2030-01-01T00:00:00.000Z  web form  crm` */
function formatSuppression({ number, reason, source, until, appId }: SuppressionView): string {
  return `${number}  ${reason}${describeUntil(until)}  ${source}  ${appId}`;
}

function describeUntil(until: string | undefined): string {
  return until === undefined ? '' : `  until ${until}`;
}
