// Handles a connection's secrets: keys and header values. They are encrypted on arrival, and masks
// replace them. So code that reads connections never has a secret.

/** A fixed length, so that a mask does not reveal the length of the secret. */
const stars = '*'.repeat(12);
/** In a shorter secret, two characters would reveal too much. */
const shortestShown = 12;

const secretNames: ReadonlySet<string> = new Set(['API_KEY', 'LLM_API_KEY']);

/** Returns the first and last character, `s************9`, or only stars for a short secret. */
export function mask(secret: string): string {
  if (secret.length < shortestShown) return stars;
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

/** Separates the secrets from a body. In the settings, masks replace them. */
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
