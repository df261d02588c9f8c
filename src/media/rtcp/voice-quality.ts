// How a call sounds, as one number (E-model, ITU-T G.107, in the short form of Cole and Rosenbluth,
// 2001): what is lost and how late it comes.

/** The R-factor of G.711 on a good line. */
const bestR = 93.2;
/**
 * G.113, appendix I: how robust G.711 is against lost packets, if the gaps are concealed as in
 * G.711, appendix I (`src/media/concealment`).
 */
const robustness = 25.1;
/** Delay beyond this much disturbs a conversation. */
const noticedDelayMs = 177.3;

/**
 * @param lossPercent share of the packets that were lost at random
 * @param delayMs one way, from mouth to ear
 * @returns from 0 (unusable) to 93.2
 */
export function rFactor(lossPercent: number, delayMs: number): number {
  const delayed = delayMs > noticedDelayMs ? 0.11 * (delayMs - noticedDelayMs) : 0;
  const delay = 0.024 * delayMs + delayed;
  const loss = (95 * lossPercent) / (lossPercent + robustness);
  return Math.max(0, bestR - delay - loss);
}

/** The mean opinion score, from 1 to 4.5, that listeners would give (G.107, annex B). */
export function meanOpinionScore(r: number): number {
  if (r <= 0) return 1;
  return Math.min(4.5, Math.max(1, 1 + 0.035 * r + r * (r - 60) * (100 - r) * 7e-6));
}
