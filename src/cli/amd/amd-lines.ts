// Formats a recording's events as aligned lines for the terminal.

import type { AmdEvent } from '../../calls/detection/amd-event.ts';
import { correctionFrom, firstVerdictFrom } from './amd-listen.ts';

const eventWords: Readonly<Record<AmdEvent['event'], string>> = {
  amd_human_detected: 'human',
  amd_machine_detected: 'machine',
  amd_no_speech_detected: 'no speech',
  amd_decision_timeout: 'undecided',
  amd_machine_stopped_speaking: 'stopped speaking',
  amd_tone_detected: 'tone',
  amd_error: 'error',
  amd_stopped: 'stopped',
};

function eventWord({ event }: AmdEvent): string {
  return eventWords[event];
}

export function eventLine(event: AmdEvent): string {
  const at = seconds(event.elapsedMs).padStart(9);
  const evidence = evidenceParts(event).join(', ');
  return `${at}  ${eventWord(event).padEnd(16)}  ${evidence}`.trimEnd();
}

function evidenceParts(event: AmdEvent): string[] {
  const parts: string[] = [event.reason];
  if (event.words !== undefined) parts.push(plural(event.words, 'word'));
  if (event.confidence !== undefined) parts.push(`confidence ${event.confidence.toFixed(2)}`);
  if (event.speechMs !== undefined) parts.push(`${seconds(event.speechMs)} of speech`);
  if (event.pauseMs) parts.push(`${seconds(event.pauseMs)} of silence`);
  if (event.tone !== undefined) {
    parts.push(`${Math.round(event.tone.hz)} Hz for ${Math.round(event.tone.ms)} ms`);
  }
  if (event.transcript !== undefined) parts.push(`“${event.transcript}”`);
  if (event.corrects !== undefined) parts.push(`corrects ${eventWords[event.corrects]}`);
  return parts;
}

/** @returns nothing if the first verdict was never corrected */
export function firstVerdictNote(events: readonly AmdEvent[]): string {
  const correction = correctionFrom(events);
  if (correction === undefined) return '';
  const { verdict, elapsedMs } = firstVerdictFrom(events);
  return ` (${verdict} at first, for ${seconds(correction.elapsedMs - elapsedMs)})`;
}

export function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(2)} s`;
}

export function plural(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? '' : 's'}`;
}
