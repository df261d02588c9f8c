// One of this process's answered calls, as the code that runs commands sees it.

import type { AcceptedCall } from '../../src/calls/call-types.ts';
import type { LiveCall } from '../../src/calls/life/call-registry.ts';

export function liveCall(call: AcceptedCall, send: LiveCall['send']): LiveCall {
  return {
    ...{ call, send, state: 'answered', acceptsKeys: true, transferObstacle: undefined },
    streamObstacles: { toBegin: undefined, toEnd: undefined },
    ...{ hidesKeys: false, recordObstacle: () => undefined },
  };
}
