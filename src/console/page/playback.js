// The cursor of a call's page, and the player of its recording. There is one cursor, on the call's
// clock. The waveform, the SIP ladder and the events show it, and each of them moves it.

import { computed, signal } from '@preact/signals';
import { callTime, filePosition } from './recording-clock.js';

/**
 * Creates the state that a call's page shares. Times are in ms since the epoch. Nothing can be
 * played until `connect` has been called with the page's audio element.
 */
export function createPlayback() {
  /** Where the cursor was put, or where the player is. Undefined if nobody has moved it. */
  const restMs = signal(undefined);
  /** What the pointer or the focus is on. Undefined if it is on nothing that has a time. */
  const pointedMs = signal(undefined);
  /** The player's position. Undefined if there is nothing to play. */
  const playedMs = signal(undefined);
  const isPlaying = signal(false);
  let connected;
  return {
    // While the recording plays, the cursor stays with the sound.
    cursorMs: computed(() => (isPlaying.value ? undefined : pointedMs.value) ?? restMs.value),
    playedMs,
    isPlaying,
    isReady: computed(() => playedMs.value !== undefined),
    connect(audio, clock) {
      const show = (ms) => {
        playedMs.value = ms;
        restMs.value = ms;
      };
      const mine = connectAudio({ audio, clock, playedMs, show, isPlaying });
      connected = mine;
      return () => {
        mine.close();
        if (connected === mine) connected = undefined;
      };
    },
    /** Puts the cursor at a time of the call, and the player at the nearest one that it has. */
    move(ms) {
      connected?.seek(ms);
      restMs.value = ms;
    },
    /** Shows the cursor at a time of the call until `leave` is called. */
    point(ms) {
      pointedMs.value = ms;
    },
    leave() {
      pointedMs.value = undefined;
    },
    toggle: () => connected?.toggle(),
    playFrom(ms) {
      connected?.seek(ms);
      if (!isPlaying.value) connected?.toggle();
    },
    /** Whether this time of the call was recorded, and can be played. */
    covers: (ms) => connected?.covers(ms) ?? false,
  };
}

function connectAudio({ audio, clock, playedMs, show, isPlaying }) {
  const { startedAtMs, durationMs } = clock;
  /** Where to begin, if the browser has read nothing yet. */
  let wantedMs;
  let frame;
  const showOffset = (ms) => show(startedAtMs + Math.min(Math.max(0, ms), durationMs));
  const follow = () => {
    // Until the browser has moved, `currentTime` may still be the old position.
    if (wantedMs === undefined && !audio.seeking)
      showOffset(callTime(clock, audio.currentTime * 1_000));
    if (isPlaying.value) frame = requestAnimationFrame(follow);
  };
  const stop = () => {
    isPlaying.value = false;
    cancelAnimationFrame(frame);
  };
  const place = () => {
    if (wantedMs === undefined) return;
    audio.currentTime = wantedMs / 1_000;
    wantedMs = undefined;
  };
  const seek = (ms) => {
    const offsetMs = Math.min(Math.max(0, ms - startedAtMs), durationMs);
    showOffset(offsetMs);
    wantedMs = filePosition(clock, offsetMs);
    if (audio.readyState > 0) place();
  };
  const listeners = {
    loadedmetadata: place,
    play: () => {
      isPlaying.value = true;
      follow();
    },
    pause: stop,
    ended: () => {
      stop();
      showOffset(durationMs);
    },
    error: stop,
  };
  for (const [name, listener] of Object.entries(listeners)) audio.addEventListener(name, listener);
  showOffset(0);
  return {
    seek,
    toggle() {
      if (!audio.paused) return audio.pause();
      if (playedMs.value >= startedAtMs + durationMs) seek(startedAtMs);
      // The element's `error` event says what went wrong.
      audio.play().catch(() => undefined);
    },
    covers: (ms) => ms >= startedAtMs && ms < startedAtMs + durationMs,
    close() {
      for (const [name, listener] of Object.entries(listeners))
        audio.removeEventListener(name, listener);
      audio.pause();
      stop();
      show(undefined);
    },
  };
}
