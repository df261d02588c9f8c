// The invariants of recorded calls, checked from outside: what is on NATS, at the receiver, in the
// bucket and in the spool.

import { createHash } from 'node:crypto';
import { isTerminal, type StreamEvent } from '../aftermath.ts';
import { compareHeard, compareSaid, readRecording } from './compare-audio.ts';
import type { BucketReader, StoredFile } from './recording-evidence.ts';
import type { FaultSpan } from './recording-faults.ts';
import type { PlacedCall, RecordingWorld } from './recording-world.ts';

export type CallStory = {
  readonly call: PlacedCall;
  /** The events of the call in their order, as the stream holds them. */
  readonly events: readonly StreamEvent[];
  /** The ids of the events in the accepted POSTs to `recording.notifyurl`. */
  readonly posts: readonly string[];
};

export type Figures = Record<string, number>;

/** What a killed process loses: see the page about formats. A tick may be late by 200 ms. */
const lostAtDeathMs = 1_300 + 200;
/** Frames in the jitter buffer when the call ended, or on their way. */
const maxUnheardFrames = 25;
/** Packets between the last tick of the recording and the BYE. */
const maxPacketsAfter = 5;
/** Loopback loses nothing, but a busy machine lets packets arrive too late. */
const maxMissingShare = 0.02;

export const isLost = (events: readonly StreamEvent[]): boolean =>
  events.some(
    ({ type, data }) =>
      isTerminal(type) && /^Gateway (lost|restarted|failed)/.test(String(data['reason'])),
  );

export class RecordingChecks {
  readonly violations: string[] = [];
  readonly figures: Figures = {};
  readonly #world: RecordingWorld;
  readonly #reader: BucketReader;
  readonly #faults: readonly FaultSpan[];

  constructor(world: RecordingWorld, reader: BucketReader, faults: readonly FaultSpan[]) {
    this.#world = world;
    this.#reader = reader;
    this.#faults = faults;
  }

  async check(story: CallStory): Promise<void> {
    const { call, events } = story;
    if (!events.some(({ type }) => isTerminal(type))) this.#violated(call, 'has no end');
    const late = lateEvents(events);
    if (!call.isRecorded) {
      const told = events.filter(({ type }) => type.startsWith('recording-')).length;
      if (told > 0) this.#violated(call, 'was not to be recorded, but has events about it');
      return;
    }
    this.#checkAnnouncement(story, late);
    for (const event of late) {
      if (event.type === 'recording-stored') await this.#checkStored(story, event);
    }
  }

  /** A recording that was started is announced once, on NATS and by POST. */
  #checkAnnouncement({ call, events, posts }: CallStory, late: readonly StreamEvent[]): void {
    const isStarted = events.some(({ type }) => type === 'recording-started');
    const failed = events.filter(
      (event) => event.type === 'recording-failed' && !late.includes(event),
    );
    if (failed.length > 1) this.#violated(call, `failed ${failed.length} times`);
    for (const { data } of failed) this.#count(`failed in the call: ${String(data['reason'])}`);
    if (late.length > 1) this.#violated(call, `is announced ${late.length} times`);
    if (isStarted && late.length === 0) this.#violated(call, 'was recorded, but is not announced');
    const isTold = late.length + failed.length > 0;
    if (!isTold && !isLost(events)) this.#violated(call, 'was neither recorded nor failed');
    // A recording that failed before it began is only in the events and the last notification.
    const [announced] = late;
    if (announced !== undefined && !posts.includes(announced.id))
      this.#violated(call, `${announced.type} was not POSTed`);
    if (new Set(posts).size > 1) this.#violated(call, `${new Set(posts).size} events were POSTed`);
    if (posts.length > 1) this.#count('POSTed again');
  }

  async #checkStored(story: CallStory, { data }: StreamEvent): Promise<void> {
    const { call, events } = story;
    this.#count('stored');
    let stored: StoredFile;
    try {
      stored = await this.#reader.read(String(data['where']));
    } catch (error) {
      this.#violated(call, String(error));
      return;
    }
    const { file, wav, metadata } = stored;
    const sum = createHash('sha256').update(file).digest('hex');
    const isSame =
      sum === data['sha256'] && sum === metadata.sha256 && file.length === data['bytes'];
    if (!isSame) this.#violated(call, 'the file differs from its announcement');
    if (call.isEncrypted) this.#count('encrypted');
    if (metadata.incomplete !== (data['incomplete'] === true))
      this.#violated(call, 'event and metadata differ about incomplete');
    if (metadata.incomplete) this.#count(`incomplete: ${metadata.reason ?? 'no reason'}`);
    const gapsMs = metadata.gaps.reduce((sum, { fromMs, untilMs }) => sum + untilMs - fromMs, 0);
    if (gapsMs > 0) this.#count('gaps in ms', gapsMs);
    this.#checkIncomplete(call, events, metadata.incomplete);
    this.#compare(call, events, wav, metadata.incomplete);
  }

  /** `incomplete` exactly where the process was killed or the disk was full. */
  #checkIncomplete(call: PlacedCall, events: readonly StreamEvent[], isIncomplete: boolean): void {
    const isFailed = events.some(
      ({ type, data }) => type === 'recording-failed' && data['reason'] === 'disk-full',
    );
    const wasLost = isLost(events);
    if (isIncomplete === (isFailed || wasLost)) return;
    // The end may not have been on the disk when the process died.
    const endedAt = this.#world.farCall(call.number)?.endedAt ?? 0;
    const diedAtEnd = this.#faults.some(
      ({ node, from }) => node !== undefined && from <= endedAt + 60_000 && from >= endedAt - 1_000,
    );
    if (isIncomplete && diedAtEnd) this.#count('incomplete although the call had just ended');
    else this.#violated(call, `is ${isIncomplete ? '' : 'not '}incomplete`);
  }

  #compare(
    call: PlacedCall,
    events: readonly StreamEvent[],
    wav: Buffer,
    isIncomplete: boolean,
  ): void {
    const far = this.#world.farCall(call.number);
    const log = this.#world.parts.phones.logs.get(far?.sipCallId ?? '');
    if (log === undefined) {
      this.#violated(call, 'has no phone');
      return;
    }
    const { left, right } = readRecording(wav);
    const heard = compareHeard(left, log);
    this.#count('frames heard, exact', heard.exact);
    this.#count('frames heard, missing', heard.missing);
    this.#count('slips', heard.slips);
    if (heard.wrong > 0) this.#violated(call, `${heard.wrong} frames are wrong on the left`);
    if (heard.missing > maxMissingShare * (heard.exact + heard.missing))
      this.#violated(call, `${heard.missing} of ${heard.exact + heard.missing} frames are missing`);
    const said = compareSaid(right, log);
    this.#count('frames said, exact', said.exact);
    this.#count('frames said, different', said.different);
    if (said.different > 0) this.#violated(call, `${said.different} frames differ on the right`);
    const hadSound = log.firstMark !== undefined;
    if (hadSound && !said.isFound && !isIncomplete)
      this.#violated(call, 'what was said is missing');
    if (isIncomplete) this.#checkLastSecond(call, events, said.after);
    else if (heard.unheard > maxUnheardFrames || said.after > maxPacketsAfter) {
      this.#violated(call, `lacks ${heard.unheard} frames heard and ${said.after} said at its end`);
    }
  }

  #checkLastSecond(call: PlacedCall, events: readonly StreamEvent[], packetsAfter: number): void {
    if (!isLost(events)) return;
    const missingMs = packetsAfter * 20;
    this.figures['lost at death, most ms'] = Math.max(
      this.figures['lost at death, most ms'] ?? 0,
      missingMs,
    );
    if (missingMs > lostAtDeathMs) this.#violated(call, `lacks the last ${missingMs} ms`);
  }

  #violated({ callId }: PlacedCall, problem: string): void {
    this.violations.push(`${callId}: ${problem}`);
  }

  #count(what: string, by = 1): void {
    this.figures[what] = (this.figures[what] ?? 0) + by;
  }
}

function lateEvents(events: readonly StreamEvent[]): readonly StreamEvent[] {
  const end = events.findIndex(({ type }) => isTerminal(type));
  if (end < 0) return [];
  return events
    .slice(end + 1)
    .filter(({ type }) => type === 'recording-stored' || type === 'recording-failed');
}

/**
 * Recording and its faults change no other event: all calls whose process survived tell the same
 * story.
 */
export function differentStories(stories: readonly CallStory[]): readonly string[] {
  const shapes = new Map<string, CallStory[]>();
  for (const story of stories) {
    if (isLost(story.events)) continue;
    const types = story.events
      .map(({ type }) => type)
      .filter((type) => !type.startsWith('recording-'));
    const shape = types.join(' ');
    shapes.set(shape, [...(shapes.get(shape) ?? []), story]);
  }
  const [, ...others] = [...shapes].sort(([, one], [, two]) => two.length - one.length);
  return others.flatMap(([shape, odd]) =>
    odd.map(
      ({ call, events }) => `${call.callId}: ${shape} (${String(events.at(-1)?.data['reason'])})`,
    ),
  );
}
