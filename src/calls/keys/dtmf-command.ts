// The `dtmf` command, which sends key presses. It's rejected if the far end doesn't accept keys.

import type { CommandHandler } from '../life/command-handler.ts';
import { hiddenDigits } from '../recording/recording-progress.ts';

/**
 * Most exchanges recognise a key press after 40 ms (Q.24), and all of them do after 70 ms. People
 * usually press a key for about 100 ms.
 */
const defaultKeyMs = 100;

export const dtmfHandler: CommandHandler<'dtmf'> = {
  note: ({ digits }, { hidesKeys }) => `dtmf ${hidesKeys ? hiddenDigits(digits) : digits}`,
  execute({ digits, durationMs = defaultKeyMs }, { live, commandId }) {
    if (!live.acceptsKeys) {
      const error =
        'The far end does not accept keys: its SDP does not list telephone-event (RFC 4733).';
      return { ok: false, code: 'digits', error };
    }
    const keys = { commandId, digits, durationMs };
    live.send({ type: 'command.media', command: { kind: 'press', keys } });
    return { ok: true, commandId, state: live.state };
  },
};
