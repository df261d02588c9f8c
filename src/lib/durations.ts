const unitsS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 };

/**
 * Parses `90`, `90s`, `15m`, `1h` or `7d` into seconds.
 *
 * @returns undefined for any other text
 */
export function parseDurationS(text: string): number | undefined {
  const [, digits, unit = 's'] = /^(\d{1,9})([smhd]?)$/.exec(text.trim()) ?? [];
  if (digits === undefined) return undefined;
  return Number(digits) * (unitsS[unit === '' ? 's' : unit] ?? 1);
}
