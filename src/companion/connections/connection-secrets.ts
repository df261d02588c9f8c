// Handles a connection's secrets, i.e. keys and header values. We encrypt them on arrival and
// replace them with masks, so code that reads connections never sees a secret.

/** Always the same length, so a mask doesn't reveal how long the secret is. */
const stars = '*'.repeat(12);
/** If a secret is shorter than this, showing two characters would reveal too much. */
const minLengthToShow = 12;

const secretNames: ReadonlySet<string> = new Set(['API_KEY', 'LLM_API_KEY']);

/** Returns the first and last character, `s************9`, or only stars for a short secret. */
export function mask(secret: string): string {
  if (secret.length < minLengthToShow) return stars;
  return `${secret.slice(0, 1)}${stars}${secret.slice(-1)}`;
}

export function isMask(text: string): boolean {
  return text.includes(stars);
}

type WithSecrets = {
  readonly fields: Readonly<Record<string, string>>;
  readonly LLM_API_KEY?: string;
  readonly headers?: readonly { readonly key: string; readonly value: string }[];
};

/** Separates a body into its secrets and its settings, in which the secrets are masked. */
export function splitSecrets(body: WithSecrets) {
  const fields = Object.entries(body.fields);
  const { LLM_API_KEY, headers } = body;
  return {
    secrets: JSON.stringify({
      fields: Object.fromEntries(fields.filter(([name]) => secretNames.has(name))),
      LLM_API_KEY,
      headers: headers?.map(({ value }) => value),
    }),
    settings: {
      ...body,
      fields: Object.fromEntries(
        fields.map(([name, value]) => [name, secretNames.has(name) ? mask(value) : value]),
      ),
      ...(LLM_API_KEY === undefined ? {} : { LLM_API_KEY: mask(LLM_API_KEY) }),
      ...(headers === undefined
        ? {}
        : { headers: headers.map(({ key, value }) => ({ key, value: mask(value) })) }),
    },
  };
}
