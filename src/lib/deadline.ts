// A signal for those who wait no longer than this. Not `AbortSignal.timeout` where it is combined with another: what
// `AbortSignal.any` makes of it holds it so weakly that it may be collected as garbage, and then never comes (Node 20).

export type Deadline = Disposable & { readonly signal: AbortSignal };

/** Aborts after `timeoutMs`, or with the other signal if that comes first. To be disposed of when no wait is left. */
export function deadline(timeoutMs: number, other?: AbortSignal): Deadline {
  const controller = new AbortController();
  const abort = (): void => controller.abort(new Error(`not within ${timeoutMs} ms`));
  const timer = setTimeout(abort, timeoutMs);
  other?.addEventListener('abort', abort, { once: true });
  if (other?.aborted === true) abort();
  return {
    signal: controller.signal,
    [Symbol.dispose]: () => {
      clearTimeout(timer);
      other?.removeEventListener('abort', abort);
    },
  };
}
