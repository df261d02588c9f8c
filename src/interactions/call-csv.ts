// Formats lists of calls as CSV (RFC 4180) for spreadsheets. Some cells come from other parties,
// e.g. a carrier's reason, and a spreadsheet would run a cell that begins like a formula. An
// apostrophe in front makes it text. Numbers such as `+12025550110` are harmless, and stay as they
// are.

import type { CallSummary } from './call-queries.ts';

const summaryColumns = [
  ...(['acceptedAt', 'callId', 'botId', 'target', 'caller', 'trunk', 'campaign'] as const),
  ...(['state', 'status', 'queuePosition', 'machineDetection'] as const),
  ...(['verdict', 'verdictReason', 'beep', 'outcome', 'fault'] as const),
  ...(['sipStatus', 'reason', 'reasonCode', 'ringingAt', 'answeredAt', 'endedAt'] as const),
  ...(['sid', 'conversationId'] as const),
] satisfies readonly (keyof CallSummary)[];

/** What the carrier said about the end. */
const endColumns = {
  causeQ850: ({ cause }) => cause?.q850,
  causeSip: ({ cause }) => cause?.sip,
  causeText: ({ cause }) => cause?.text,
  retryAfterS: ({ retryAfterS }) => retryAfterS,
  warning: ({ warning }) => warning,
  connectedIdentity: ({ connectedIdentity }) => connectedIdentity,
  blockedBy: ({ block }) => block?.by,
  blockUrl: ({ block }) => block?.url,
  blockId: ({ block }) => block?.id,
} satisfies Readonly<Record<string, (call: CallSummary) => Cell>>;

export const csvHeader = csvLine([...summaryColumns, ...Object.keys(endColumns)]);

/** Formats a call, with the columns of `csvHeader`. */
export function csvOfCall(call: CallSummary): string {
  const ends = Object.values(endColumns).map((cell) => cell(call));
  return csvLine([...summaryColumns.map((name) => call[name]), ...ends]);
}

type Cell = string | number | boolean | undefined;

/** Formats a line, including its end. */
export function csvLine(cells: readonly Cell[]): string {
  return `${cells.map(formatCell).join(',')}\r\n`;
}

function formatCell(value: Cell): string {
  const text = asText(String(value ?? ''));
  return /[",;\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function asText(text: string): string {
  const mayBeFormula = /^[=+\-@\t\r\n]/.test(text);
  const isNumber = /^[+-]?\d+(\.\d+)?$/.test(text);
  return mayBeFormula && !isNumber ? `'${text}` : text;
}
