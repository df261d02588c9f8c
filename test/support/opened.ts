// Resources that are opened by one hook and closed by its counterpart. The test file can use such a
// resource like a constant.

import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';

type Open<Opened> = () => Opened | Promise<Opened>;
type Close<Opened> = (opened: Opened) => unknown;

/** Opens a resource before the first test of the suite and closes it after the last. */
export function forSuite<Opened extends object>(
  open: Open<Opened>,
  close: Close<Opened> = closeOne,
): Opened {
  return opened(open, close, beforeAll, afterAll);
}

/** Opens a resource before each test and closes it after the test. */
export function forEachTest<Opened extends object>(
  open: Open<Opened>,
  close: Close<Opened> = closeOne,
): Opened {
  return opened(open, close, beforeEach, afterEach);
}

/** Names of methods that close a resource. We call the first one that exists. */
const closers = [Symbol.asyncDispose, 'close', 'stop', 'remove'] as const;

async function closeOne(opened: Partial<Record<(typeof closers)[number], unknown>>): Promise<void> {
  const closer = closers.find((name) => typeof opened[name] === 'function');
  if (closer !== undefined) await (opened[closer] as () => unknown).call(opened);
}

/** Returns a proxy for the resource that is currently open. */
function opened<Opened extends object>(
  open: Open<Opened>,
  close: Close<Opened>,
  before: typeof beforeAll | typeof beforeEach,
  after: typeof afterAll | typeof afterEach,
): Opened {
  let current: Opened | undefined;
  const now = (): Opened => {
    if (current === undefined) throw new Error('this is open only while tests run');
    return current;
  };
  before(async () => {
    current = await open();
  });
  after(async () => {
    if (current !== undefined) await close(current);
    current = undefined;
  });
  return new Proxy({} as Opened, {
    get: (_, key) => {
      const value: unknown = Reflect.get(now(), key);
      // Private members are read from the object itself.
      return typeof value === 'function' ? (value.bind(now()) as unknown) : value;
    },
    set: (_, key, value) => Reflect.set(now(), key, value),
    has: (_, key) => Reflect.has(now(), key),
    getPrototypeOf: () => Reflect.getPrototypeOf(now()),
    ownKeys: () => Reflect.ownKeys(now()),
    getOwnPropertyDescriptor: (_, key) => {
      const descriptor = Reflect.getOwnPropertyDescriptor(now(), key);
      return descriptor && { ...descriptor, configurable: true };
    },
  });
}
