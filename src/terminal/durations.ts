/** `2 s`, `10 min`, `1 h`: in the unit that people would say it in. */
export function inUnits(ms: number): string {
  const s = Math.max(1, Math.round(ms / 1_000));
  if (s < 120) return `${s} s`;
  return s < 7_200 ? `${Math.round(s / 60)} min` : `${Math.round(s / 3_600)} h`;
}
