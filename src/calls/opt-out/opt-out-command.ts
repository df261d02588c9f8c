// The `optOut` command: the person has said that they don't want to be called any more.

import type { CommandHandler } from '../life/command-handler.ts';
import { suppressedAddressOf } from '../rules/suppression.ts';

export const optOutHandler: CommandHandler<'optOut'> = {
  note: () => 'optOut',
  execute(_command, { live, commandId }) {
    if (suppressedAddressOf(live.call.request.target) === undefined) {
      const error =
        'The target cannot be suppressed: its number is only valid within a phone-context.';
      return { ok: false, code: 'state', error };
    }
    live.send({ type: 'command.optOut', commandId });
    return { ok: true, commandId, state: live.state };
  },
};
