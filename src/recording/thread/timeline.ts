// Puts a recording's parts in order on its clock: which audio and which silence the file consists
// of, and where pauses and gaps are. Pure.

import type { RecordingFill, RecordingPause } from '../../calls/recording/recording.ts';
import { channelCount, type RecordingEnd } from '../recording-messages.ts';
import type { GapReason } from '../recording-metadata.ts';
import type { StoredAudio, StoredPart } from './spool-reader.ts';

export type Piece = StoredAudio | { readonly kind: 'silence'; readonly samples: number };

/** Positions and lengths are in samples. `fileAt` is the position in the file. */
export type TimelinePause = {
  readonly from: number;
  readonly until: number;
  readonly fileAt: number;
  readonly by: RecordingPause;
};
export type TimelineGap = {
  readonly from: number;
  readonly until: number;
  readonly reason: GapReason;
};

export type Timeline = {
  readonly pieces: readonly Piece[];
  readonly pauses: readonly TimelinePause[];
  readonly gaps: readonly TimelineGap[];
  readonly samples: number;
  /** Without the pauses, if they are cut out. */
  readonly fileSamples: number;
  /** Undefined if the recording's end is unknown. */
  readonly end: RecordingEnd | undefined;
};

export function timelineOf(parts: readonly StoredPart[], fill: RecordingFill): Timeline {
  const builder = new TimelineBuilder(fill);
  for (const part of parts) builder.add(part);
  return builder.finish();
}

class TimelineBuilder {
  readonly #fill: RecordingFill;
  readonly #pieces: Piece[] = [];
  readonly #pauses: TimelinePause[] = [];
  readonly #gaps: TimelineGap[] = [];
  #samples = 0;
  #fileSamples = 0;
  #pause: { readonly from: number; readonly by: RecordingPause } | undefined;
  #end: RecordingEnd | undefined;

  constructor(fill: RecordingFill) {
    this.#fill = fill;
  }

  add(part: StoredPart): void {
    if (this.#end !== undefined) return;
    switch (part.kind) {
      case 'stored':
        this.#addAudio(part);
        return;
      case 'gap':
        this.#reach(part.at);
        this.#addGap(part.until, part.reason);
        return;
      case 'pause':
        this.#reach(part.at);
        this.#pause ??= { from: this.#samples, by: part.by };
        return;
      case 'resume':
        this.#reach(part.at);
        return;
      case 'end':
        this.#reach(part.at);
        this.#end = part.end;
        return;
    }
  }

  finish(): Timeline {
    // The far side of an open pause is unknown, and so it has no length.
    this.#endPause(this.#samples);
    return {
      ...{ pieces: this.#pieces, pauses: this.#pauses, gaps: this.#gaps },
      ...{ samples: this.#samples, fileSamples: this.#fileSamples, end: this.#end },
    };
  }

  #addAudio(part: StoredAudio): void {
    // What overlaps is damaged, because a recorder never sends the same sample twice.
    if (part.at < this.#samples) return;
    this.#reach(part.at);
    const samples = Math.floor(part.bytes / channelCount);
    this.#pieces.push(part);
    this.#samples += samples;
    this.#fileSamples += samples;
  }

  /** Fills what's missing up to the position: the current pause, or what was lost. */
  #reach(at: number): void {
    if (this.#pause !== undefined) this.#endPause(Math.max(at, this.#samples));
    else this.#addGap(at, 'lost');
  }

  #endPause(until: number): void {
    const pause = this.#pause;
    if (pause === undefined) return;
    this.#pause = undefined;
    this.#pauses.push({ ...pause, until, fileAt: this.#fileSamples });
    this.#samples = until;
    if (this.#fill === 'silence') this.#addSilence(until - pause.from);
  }

  #addGap(until: number, reason: GapReason): void {
    if (until <= this.#samples) return;
    this.#gaps.push({ from: this.#samples, until, reason });
    this.#addSilence(until - this.#samples);
    this.#samples = until;
  }

  #addSilence(samples: number): void {
    if (samples === 0) return;
    this.#pieces.push({ kind: 'silence', samples });
    this.#fileSamples += samples;
  }
}
