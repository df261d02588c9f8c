// Places a recording on its call's clock. A pause that was cut out is missing in the file, so
// positions in the file and times of the call differ from then on.

/**
 * Reads where the recording and its pauses are: from its metadata, or before it is stored, from the
 * call's events. All `…Ms` count from the first sample, on the call's clock.
 *
 * @param metadata the file `<callId>.json` beside the recording. Undefined until it is stored,
 * or if it can't be read
 * @returns undefined if recording hasn't begun
 */
export function recordingClock({ timeline, recording }, metadata) {
  const started = timeline.find(({ type }) => type === 'recording-started');
  const startedAt = metadata?.startedAt ?? started?.data.startedAt;
  if (startedAt === undefined) return undefined;
  const durationMs = metadata?.durationMs ?? recording?.durationMs;
  return {
    startedAtMs: Date.parse(startedAt),
    /** Undefined while the call is being recorded, or if nobody knows how long it was. */
    durationMs,
    isCut: (metadata?.fill ?? started?.data.fill) === 'cut',
    pauses: metadata?.pauses ?? pausesOf(timeline, durationMs),
    gaps: metadata?.gaps ?? [],
  };
}

/** A pause that isn't over has no `untilMs` until the recording's length is known. */
function pausesOf(timeline, durationMs) {
  const pauses = [];
  for (const { type, data } of timeline) {
    if (type === 'recording-paused') pauses.push({ fromMs: data.offsetMs, by: data.by });
    const last = pauses.at(-1);
    if (type === 'recording-resumed' && last) last.untilMs ??= data.offsetMs;
  }
  return pauses.map((pause) => ({ ...pause, untilMs: pause.untilMs ?? durationMs }));
}

/** Returns the position in the file for a time of the call. In a cut pause, that's the cut. */
export function filePosition({ isCut, pauses }, ms) {
  if (!isCut) return ms;
  const cut = pauses.map(({ fromMs, untilMs }) => Math.min(ms, untilMs) - Math.min(ms, fromMs));
  return ms - cut.reduce((sum, one) => sum + one, 0);
}

/** Returns the time of the call for a position in the file. At a cut, that's the pause's end. */
export function callTime({ isCut, pauses }, filePositionMs) {
  if (!isCut) return filePositionMs;
  let ms = filePositionMs;
  for (const { fromMs, untilMs } of pauses) {
    if (ms < fromMs) break;
    ms += untilMs - fromMs;
  }
  return ms;
}

/**
 * Returns the recording's parts as items of a lane below the waveform, which begins at `fromMs` (ms
 * since the epoch).
 */
export function recordingItems({ startedAtMs, durationMs, pauses, gaps }, fromMs) {
  const beginMs = startedAtMs - fromMs;
  const item = (part, text, tone) => ({
    atMs: Math.max(0, beginMs + part.fromMs),
    // What isn't over lasts to the end of the picture.
    untilMs: part.untilMs === undefined ? Number.POSITIVE_INFINITY : beginMs + part.untilMs,
    ...{ text, tone },
  });
  return [
    item({ fromMs: 0, untilMs: durationMs }, 'recorded', 'recorded'),
    ...pauses.map((pause) => item(pause, `paused by ${pause.by}`, 'paused')),
    ...gaps.map((gap) => item(gap, `missing: ${gap.reason}`, 'missing')),
  ];
}
