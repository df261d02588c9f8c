// A stream by command, judged where its call is, through whichever door the command came: whether a bot may be at that address, and
// whether the app that placed the call can sign. What may be a secret in the URL is sealed before the call has it.

import type { StreamingPorts } from '../../calls/stream/stream-command.ts';
import type { AppDirectory } from '../../store/apps/app-directory.ts';
import { notReachable } from '../dialout/stream-request.ts';
import type { StreamServices } from '../services.ts';

export type StreamJudgePorts = {
  readonly apps: Pick<AppDirectory, 'find'>;
  readonly streams: Pick<StreamServices, 'isReachable' | 'seal'>;
};

export function createStreamJudge({
  apps,
  streams,
}: StreamJudgePorts): StreamingPorts['judgeStream'] {
  return async ({ appId, botId }, { url, parameters = {} }) => {
    const problems: string[] = [];
    if (!streams.isReachable(new URL(url))) problems.push(notReachable);
    try {
      const app = await apps.find(appId);
      if (app === undefined) problems.push(`the app ${appId} is revoked`);
    } catch {
      // SQL does not answer. Opening the stream asks again, and tells if it cannot.
    }
    if (problems.length === 0) {
      return { ok: true, stream: { ...streams.seal(botId, url), connect: 'answered', parameters } };
    }
    const errors = problems.map((message) => ({ path: 'url', message }));
    const error = `url: ${problems.join('; ')}`;
    return { ok: false, refusal: { ok: false, code: 'invalid', error, errors } };
  };
}
