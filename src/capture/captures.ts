// Captures this process's calls while they are up, and stores each capture once all of the call's
// SIP dialogs and transactions have ended.

import { LRUCache } from 'lru-cache';
import { CallNotes } from '../calls/capture/call-notes.ts';
import type {
  AudioEnvelope,
  CallNote,
  CallNotesView,
  SipCapture,
  SipMessage,
} from '../calls/capture/capture.ts';
import type { CallId } from '../calls/contract/identity.ts';
import type { MediaObserver, MediaPort } from '../calls/media.ts';
import { Batcher } from '../lib/batcher.ts';
import { upTo } from '../lib/growing-cache.ts';
import { inBackground } from '../lib/in-background.ts';
import type { Logger } from '../lib/logger.ts';
import { within } from '../lib/within.ts';
import type { AudioView, CaptureView, StoredCapture } from './capture-store.ts';
import { SipLog } from './sip-log.ts';

type Live = {
  readonly sip: SipLog;
  /** Notes from this thread. The media worker's notes arrive with the audio. */
  readonly notes: CallNotes;
  /** Ids of the second legs, in dialling order. */
  readonly secondLegs: string[];
  audio?: AudioEnvelope;
  /** True once we're capturing the first leg's media session. */
  isHeard?: true;
  /** Requests the audio from the media worker. Undefined while no session is open. */
  askAudio?: (() => void) | undefined;
  /** Called for readers that are waiting for the media worker's audio. */
  readonly waiting: Set<() => void>;
};

type Owner = { readonly callId: CallId; readonly leg?: number };

export type CapturesOptions = {
  readonly write: (captures: readonly StoredCapture[]) => Promise<void>;
  readonly sipCallIdOf: (text: string) => string | undefined;
  readonly logger: Logger;
  /** Whether key presses of the call must not be kept now. Default: they are kept. */
  readonly hidesKeys?: (callId: CallId) => boolean;
};

/**
 * Maximum number of calls in memory, at about 10 KB each. Because a node never has this many live
 * calls, the limit only evicts calls that never finish.
 */
const maxCalls = 5_000;
/**
 * We store a finished call after one to two of these intervals. By then, the media worker's final
 * report has arrived, and several calls can share one statement. Until then, it's read from memory.
 */
const sweepMs = 1_000;
const maxBatch = 50;
const maxWaiting = 2_000;
/**
 * Time-out for a reader that waits for a live call's audio. The media worker usually responds
 * within milliseconds. After the time-out, the reader gets the previous report.
 */
const audioTimeoutMs = 250;

export class Captures implements SipCapture {
  readonly #logger: Logger;
  readonly #sipCallIdOf: CapturesOptions['sipCallIdOf'];
  readonly #hidesKeys: (callId: CallId) => boolean;
  readonly #live = new LRUCache<CallId, Live>(upTo(maxCalls));
  readonly #bySipCallId = new LRUCache<string, Owner>(upTo(2 * maxCalls));
  /** Calls that have finished since the last sweep. */
  #justFinished = new Set<CallId>();
  /** Calls that finished before the last sweep. The next sweep will store them. */
  #finished = new Set<CallId>();
  #sweepTimer: NodeJS.Timeout | undefined;
  readonly #writer: Batcher<StoredCapture, undefined>;

  constructor({ write, sipCallIdOf, logger, hidesKeys = () => false }: CapturesOptions) {
    this.#logger = logger;
    this.#hidesKeys = hidesKeys;
    this.#sipCallIdOf = sipCallIdOf;
    this.#writer = new Batcher(
      async (captures) => {
        await write(captures);
        return captures.map(() => undefined);
      },
      { maxBatch, maxWaiting, concurrency: 1 },
    );
  }

  follow(callId: CallId, sipCallId: string, legId?: string): void {
    const { secondLegs } = this.#liveFor(callId);
    if (legId === undefined) {
      this.#bySipCallId.set(sipCallId, { callId });
      return;
    }
    if (!secondLegs.includes(legId)) secondLegs.push(legId);
    this.#bySipCallId.set(sipCallId, { callId, leg: secondLegs.indexOf(legId) + 1 });
  }

  add(message: SipMessage): void {
    const sipCallId = this.#sipCallIdOf(message.text);
    const owner = sipCallId === undefined ? undefined : this.#bySipCallId.get(sipCallId);
    if (owner === undefined) return;
    const { callId, leg } = owner;
    this.#live.get(callId)?.sip.add(message, leg, this.#hidesKeys(callId));
  }

  /** Adds a note if the call is up in this process. */
  note(callId: CallId, note: CallNote): void {
    this.#live.get(callId)?.notes.add(note);
  }

  /** Wraps a media port so that we capture the audio of its sessions. */
  wrapPort(port: MediaPort): MediaPort {
    return {
      open: async (callId, observer, codecs) => {
        const live = this.#liveFor(callId);
        // We capture only the first leg's audio.
        if (live.isHeard) return await port.open(callId, observer, codecs);
        live.isHeard = true;
        const session = await port.open(callId, this.#observer(live, observer), codecs);
        if (session === undefined) return undefined;
        live.askAudio = () => session.send({ kind: 'requestEnvelope' });
        return {
          ...session,
          close: () => {
            live.askAudio = undefined;
            session.close();
          },
        };
      },
    };
  }

  /**
   * Returns everything that we've captured for a call so far.
   *
   * @returns undefined if this process doesn't have the call in memory
   */
  async view(callId: CallId): Promise<CaptureView | undefined> {
    const live = this.#live.get(callId);
    if (live === undefined) return undefined;
    const { askAudio, waiting } = live;
    // Once the call has finished, the media worker sends its final report without a request.
    if (askAudio !== undefined && !this.#finished.has(callId) && !this.#justFinished.has(callId)) {
      let settle = (): void => undefined;
      const reported = new Promise<void>((resolve) => {
        settle = resolve;
      });
      waiting.add(settle);
      askAudio();
      await within(reported, audioTimeoutMs);
      waiting.delete(settle);
    }
    return viewOf(live);
  }

  /**
   * Schedules the capture for storing. Call this once all of the call's SIP dialogs and
   * transactions have ended. The media worker's final report arrives a moment later.
   */
  finish(callId: CallId): void {
    if (this.#live.get(callId) === undefined || this.#finished.has(callId)) return;
    this.#justFinished.add(callId);
    this.#sweepTimer ??= setTimeout(() => this.#sweep(), sweepMs);
  }

  /** Stores all finished calls' captures right away, before the process exits. */
  async flush(): Promise<void> {
    clearTimeout(this.#sweepTimer);
    await Promise.all(
      [...this.#finished, ...this.#justFinished].map((callId) => this.#store(callId)),
    );
  }

  #sweep(): void {
    const due = this.#finished;
    this.#finished = this.#justFinished;
    this.#justFinished = new Set();
    for (const callId of due) inBackground(this.#store(callId), this.#logger, 'storing a capture');
    const isEmpty = this.#finished.size === 0;
    this.#sweepTimer = isEmpty ? undefined : setTimeout(() => this.#sweep(), sweepMs);
  }

  async #store(callId: CallId): Promise<void> {
    const live = this.#live.get(callId);
    if (live === undefined) return;
    const capture = viewOf(live);
    try {
      // Keep the capture in memory until it can be read from the database.
      if (Object.keys(capture).length > 0) await this.#writer.add({ callId, capture });
    } catch (error) {
      // Although we lose the capture, the call must still end.
      this.#logger.warn({ err: error, callId }, 'cannot store the capture of a call');
    }
    this.#live.delete(callId);
  }

  #liveFor(callId: CallId): Live {
    const known = this.#live.get(callId);
    if (known !== undefined) return known;
    const live: Live = {
      sip: new SipLog(),
      notes: new CallNotes(),
      secondLegs: [],
      waiting: new Set(),
    };
    this.#live.set(callId, live);
    return live;
  }

  #observer(live: Live, observer: MediaObserver): MediaObserver {
    return {
      observe: (event) => {
        if (event.kind !== 'envelope') {
          observer.observe(event);
          return;
        }
        if (event.envelope !== undefined) live.audio = event.envelope;
        for (const settle of live.waiting) settle();
      },
    };
  }
}

function viewOf({ sip, audio, notes }: Live): CaptureView {
  const log = sip.view();
  const noted = inOrder(notes.view(), audio?.notes);
  return {
    ...(log.messages.length === 0 ? {} : { sip: log }),
    ...(audio === undefined || audio.heard.length === 0 ? {} : { audio: audioOf(audio) }),
    ...(noted.notes.length === 0 ? {} : { notes: noted }),
  };
}

function inOrder(own: CallNotesView, fromMedia: CallNotesView = { notes: [], left: 0 }) {
  return {
    notes: [...own.notes, ...fromMedia.notes].sort((one, other) => one.at - other.at),
    left: own.left + fromMedia.left,
  };
}

function audioOf({ startedAt, stepMs, heard, said }: AudioEnvelope): AudioView {
  return { startedAt, stepMs, heard: base64(heard), said: base64(said) };
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64');
}
