// Makes the content keys of recordings, and opens them again for what a lost node left. A content
// key leaves this process only encrypted: for the account's public key in the recording, and under
// `SECRETS_KEY` in the spool.

import { randomBytes } from 'node:crypto';
import type { AcceptedCall } from '../../calls/call-types.ts';
import type { PreparedRecording, RecordingPort } from '../../calls/ports.ts';
import type { Logger } from '../../lib/logger.ts';
import { within } from '../../lib/within.ts';
import type { RecordingKeys } from '../../store/recordings/recording-keys.ts';
import type { SecretBox } from '../../store/secrets.ts';
import { contentKeyBytes, readPublicKey, wrapContentKey } from '../formats/key-wrapping.ts';
import type { SpoolHeader } from '../thread/spool-header.ts';

/** The call is not dialled yet, but its start on the trunk is taken. */
const prepareTimeoutMs = 2_000;

export function createRecordingPort(
  keys: Pick<RecordingKeys, 'find'>,
  secrets: Pick<SecretBox, 'seal'>,
  logger: Logger,
): RecordingPort {
  return {
    async prepare(call, keyName) {
      if (keyName === undefined) return { ok: true };
      try {
        const prepared = await within(encrypt(keys, secrets, call, keyName), prepareTimeoutMs);
        return prepared ?? { ok: false, reason: 'the database does not respond' };
      } catch (error) {
        logger.warn({ err: error, callId: call.callId }, 'the key of a recording was not read');
        return { ok: false, reason: 'the key could not be read' };
      }
    },
  };
}

async function encrypt(
  keys: Pick<RecordingKeys, 'find'>,
  secrets: Pick<SecretBox, 'seal'>,
  { accountId, callId }: AcceptedCall,
  keyName: string,
): Promise<PreparedRecording> {
  const found = await keys.find(accountId, keyName);
  if (found === undefined) return { ok: false, reason: `there is no key ${keyName}` };
  const publicKey = readPublicKey(found.publicKey);
  if (!publicKey.ok) return { ok: false, reason: `the key ${keyName} is unusable` };
  const contentKey = randomBytes(contentKeyBytes);
  const sealed = secrets.seal('recording-key', callId, contentKey.toString('base64'));
  return {
    ok: true,
    encryption: {
      ...{ keyName, contentKey, sealedContentKey: sealed.toString('base64') },
      wrapped: wrapContentKey(contentKey, publicKey.key),
    },
  };
}

/** @throws Error if `SECRETS_KEY` doesn't open the content key */
export function openContentKey(
  secrets: Pick<SecretBox, 'open'>,
  { callId, encryption }: SpoolHeader,
): Uint8Array {
  const sealed = Buffer.from(encryption?.sealedContentKey ?? '', 'base64');
  return Buffer.from(secrets.open('recording-key', callId, sealed), 'base64');
}
