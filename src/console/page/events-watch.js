// Watches the app's calls for a reading, unless the page is hidden.

import { onEvent } from './api.js';

/** For `watch` of `useReading`: calls `soon` on each event, and when the page is shown again. */
export function whileVisible(soon) {
  const soonIfVisible = () => {
    if (!document.hidden) soon();
  };
  const stop = onEvent(soonIfVisible);
  document.addEventListener('visibilitychange', soonIfVisible);
  return () => {
    stop();
    document.removeEventListener('visibilitychange', soonIfVisible);
  };
}
