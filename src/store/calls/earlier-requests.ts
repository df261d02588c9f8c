// Finds earlier requests by their idempotency keys, as long as those keys haven't expired.

export const earlierStatement = `
select i.call_id, k.request_hash, k.answer
from json_to_recordset($1::json) as i(call_id text, app_id text, bot_id text, key text, accepted_at timestamptz)
join idempotency_keys k using (app_id, bot_id, key) where k.expires_at > i.accepted_at`;
