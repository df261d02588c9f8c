const unitsS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 };

/** `90`, `90s`, `15m`, `1h`, `7d` in seconds; undefined for anything else. */
export function parseDurationS(text: string): number | undefined {
  const [, digits, unit = 's'] = /^(\d{1,9})([smhd]?)$/.exec(text.trim()) ?? [];
  if (digits === undefined) return undefined;
  return Number(digits) * (unitsS[unit === '' ? 's' : unit] ?? 1);
}
