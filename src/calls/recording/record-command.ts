// The `record` command, which starts, pauses, resumes or stops the recording of a call.

import type { CommandHandler } from '../life/command-handler.ts';

export const recordHandler: CommandHandler<'record'> = {
  note: ({ action }) => `record ${action}`,
  execute({ action }, { live, commandId }) {
    const error = live.recordObstacle(action);
    if (error !== undefined) return { ok: false, code: 'state', error };
    live.send({ type: 'command.record', action, commandId });
    return { ok: true, commandId, state: live.state };
  },
};
