// Plays a call's recording. The cursor is on the call's clock, so that the waveform, the timeline
// and the player all show the same instant.

import { computed, signal } from '@preact/signals';
import { callTime, filePosition } from './recording-clock.js';

/**
 * Creates the state that a call's page shares. Nothing can be played until `connect` has been
 * called with the page's audio element.
 */
export function createPlayback() {
  /** The cursor, in ms since the epoch. Undefined if there is nothing to play. */
  const cursorMs = signal(undefined);
  const isPlaying = signal(false);
  const isReady = computed(() => cursorMs.value !== undefined);
  let connected;
  return {
    cursorMs,
    isPlaying,
    isReady,
    connect(audio, clock) {
      const mine = connectAudio({ audio, clock, cursorMs, isPlaying });
      connected = mine;
      return () => {
        mine.close();
        if (connected === mine) connected = undefined;
      };
    },
    /** Moves the cursor to a time of the call, or to the nearest one that was recorded. */
    seek: (ms) => connected?.seek(ms),
    toggle: () => connected?.toggle(),
    playFrom(ms) {
      connected?.seek(ms);
      if (!isPlaying.value) connected?.toggle();
    },
    /** Whether this time of the call was recorded, and can be played. */
    covers: (ms) => connected?.covers(ms) ?? false,
  };
}

function connectAudio({ audio, clock, cursorMs, isPlaying }) {
  const { startedAtMs, durationMs } = clock;
  /** Where to begin, if the browser has read nothing yet. */
  let wantedMs;
  let frame;
  const show = (ms) => {
    cursorMs.value = startedAtMs + Math.min(Math.max(0, ms), durationMs);
  };
  const follow = () => {
    // Until the browser has moved, `currentTime` may still be the old position.
    if (wantedMs === undefined && !audio.seeking) show(callTime(clock, audio.currentTime * 1_000));
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
    show(offsetMs);
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
      show(durationMs);
    },
    error: stop,
  };
  for (const [name, listener] of Object.entries(listeners)) audio.addEventListener(name, listener);
  show(0);
  return {
    seek,
    toggle() {
      if (!audio.paused) return audio.pause();
      if (cursorMs.value >= startedAtMs + durationMs) seek(startedAtMs);
      // The element's `error` event says what went wrong.
      audio.play().catch(() => undefined);
    },
    covers: (ms) => ms >= startedAtMs && ms < startedAtMs + durationMs,
    close() {
      for (const [name, listener] of Object.entries(listeners))
        audio.removeEventListener(name, listener);
      audio.pause();
      stop();
      cursorMs.value = undefined;
    },
  };
}
