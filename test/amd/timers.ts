// Checks the timers against the events of a whole call, to within one frame.

import { frameMs } from '../../src/amd/frame.ts';
import type { AmdTimers } from '../../src/calls/call-types.ts';
import type { AmdEvent, AmdEventName } from '../../src/calls/detection/amd-event.ts';

const longestGreetingMs = 60_000;
const humanListenMs = 5_000;

/**
 * Returns the time of the frame in which this much time has passed. Nothing is known before the
 * first frame.
 */
function frameAfter(ms: number): number {
  return Math.max(1, Math.ceil(ms / frameMs)) * frameMs;
}

/** Names the timer that these events break, or returns undefined if they break none. */
export function timerFault(events: readonly AmdEvent[], timers: AmdTimers): string | undefined {
  const at = (name: AmdEventName) => events.find(({ event }) => event === name)?.elapsedMs;
  const stopped = events.at(-1);
  if (stopped === undefined) return 'nothing was stated';
  const decisionMs = frameAfter(timers.decisionTimeoutMs);
  const verdictMs = at('amd_human_detected') ?? at('amd_machine_detected');
  if (verdictMs !== undefined && verdictMs > decisionMs) return 'a verdict after its time-out';
  const noSpeechMs = at('amd_no_speech_detected');
  if (noSpeechMs !== undefined && noSpeechMs !== frameAfter(timers.noSpeechTimeoutMs))
    return 'no speech at another time';
  const undecidedMs = at('amd_decision_timeout');
  if (undecidedMs !== undefined && undecidedMs !== decisionMs) return 'undecided at another time';
  const toneMs = at('amd_tone_detected');
  if (toneMs !== undefined && toneMs > frameAfter(timers.toneTimeoutMs))
    return 'a tone after its time-out';
  return (
    pauseFault(events, timers.greetingCompletionTimeoutMs) ?? endFault(events, stopped, timers)
  );
}

function pauseFault(events: readonly AmdEvent[], timeoutMs: number): string | undefined {
  const silence = events.find(
    ({ event, reason }) => event === 'amd_machine_stopped_speaking' && reason === 'silence',
  );
  const tooEarly = silence !== undefined && (silence.pauseMs ?? 0) < timeoutMs;
  return tooEarly ? 'a greeting that ended before its silence' : undefined;
}

function endFault(
  events: readonly AmdEvent[],
  stopped: AmdEvent,
  timers: AmdTimers,
): string | undefined {
  const { elapsedMs, reason } = stopped;
  if (elapsedMs > longestGreetingMs) return 'longer than the longest greeting';
  const human = events.find(({ event }) => event === 'amd_human_detected');
  const listenedToMs = (human?.elapsedMs ?? 0) + humanListenMs;
  if (reason === 'human' && elapsedMs < listenedToMs)
    return 'detection stopped too early after a person';
  // Longer only for the beep of a recording that goes on.
  const longestMs = Math.max(listenedToMs, frameAfter(timers.toneTimeoutMs));
  if (human !== undefined && elapsedMs > longestMs)
    return 'detection stopped too late after a person';
  const lastMs = events.at(-2)?.elapsedMs ?? 0;
  const toneTimeoutMs = Math.max(lastMs, frameAfter(timers.toneTimeoutMs));
  return reason === 'tone-timeout' && elapsedMs !== toneTimeoutMs
    ? 'the tone time-out at another time'
    : undefined;
}
