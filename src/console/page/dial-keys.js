// Of a request that is sent again, because it is not known whether it arrived, the key is the same, whatever was done in the form meanwhile:
// no phone is called twice.

const mostKept = 100;

const keys = new Map();

export function keyFor(request) {
  const text = JSON.stringify(request);
  const key = keys.get(text) ?? newKey();
  // Set anew, it is the last one to make room.
  keys.delete(text);
  keys.set(text, key);
  if (keys.size > mostKept) keys.delete(keys.keys().next().value);
  return key;
}

/** Its call is known: the next one like it is another call. A refusal says nothing of what was sent before it. */
export function forgetKey(request) {
  keys.delete(JSON.stringify(request));
}

function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `console-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}
