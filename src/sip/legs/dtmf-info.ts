// DTMF in SIP INFO: `application/dtmf-relay` (Cisco: `Signal=5`, `Duration=160`) and `application/dtmf` (the digit alone).

export type InfoDigit = { readonly digit: string; readonly durationMs?: number };

const digitPattern = /^[0-9*#A-D]$/;

// Longer is a stuck key or nonsense; RFC 4733 senders stop at 8 s as well.
const maxDurationMs = 30_000;

export function parseDtmfInfo(
  contentType: string | undefined,
  body: string | undefined,
): InfoDigit | undefined {
  const type = contentType?.split(';', 1)[0]?.trim().toLowerCase();
  if (type === 'application/dtmf') return digitOf(body);
  if (type !== 'application/dtmf-relay') return undefined;
  const signal = digitOf(/^\s*signal\s*=\s*(\S{1,4})/im.exec(body ?? '')?.[1]);
  const duration = /^\s*duration\s*=\s*(\d{1,6})/im.exec(body ?? '')?.[1];
  if (signal === undefined || duration === undefined) return signal;
  return { ...signal, durationMs: Math.min(Number(duration), maxDurationMs) };
}

function digitOf(text: string | undefined): InfoDigit | undefined {
  const sign = text?.trim().toUpperCase() ?? '';
  // Some gateways send the event codes of RFC 4733 for star and pound.
  const digit = sign === '10' ? '*' : sign === '11' ? '#' : sign;
  return digitPattern.test(digit) ? { digit } : undefined;
}
