// The two shapes of a body for provider `API`: a custom provider, whose requests the caller describes, or an existing one,
// which is mapped. Any member of the second makes it the second.

const customOnly = [
  'promptVars',
  'customVars',
  'payload',
  'outputPath',
  'inputTokensPath',
  'outputTokensPath',
];
const existingOnly = ['idp', 'bodyTab', 'mapProvider', 'llmFeatures', 'IOMappings'];
/** In `fields`. */
const mapped = ['IOMapping', 'mapProvider'];

type Members = Readonly<Record<string, unknown>>;
type Problem = { readonly path: readonly string[]; readonly message: string };

/** What is wrong with the members taken together. */
export function apiFormProblems(body: Members & { readonly fields: Members }): readonly Problem[] {
  const marks = [
    ...existingOnly.filter((name) => name in body),
    ...mapped.filter((name) => name in body.fields).map((name) => `fields.${name}`),
  ];
  const [mark] = marks;
  return [
    ...placeProblems(body, 'LLM_API_URL'),
    ...placeProblems(body, 'LLM_API_KEY'),
    ...(mark === undefined ? [] : existingProblems(body, mark)),
  ];
}

/** The specification's table has these beside `fields`, whose heading suggests in them. */
function placeProblems(body: Members & { readonly fields: Members }, name: string): Problem[] {
  const [outer, inner] = [body[name], body.fields[name]];
  if (outer === undefined && inner === undefined) return [{ path: [name], message: 'is required' }];
  if (outer === undefined || inner === undefined || outer === inner) return [];
  return [{ path: ['fields', name], message: `differs from ${name} beside fields` }];
}

function existingProblems(body: Members & { readonly fields: Members }, mark: string): Problem[] {
  const { fields, mapProvider, IOMappings } = body;
  const problems = customOnly
    .filter((name) => name in body)
    .map((name) => ({
      path: [name],
      message: `belongs to the custom-provider form, ${mark} to the existing-provider form`,
    }));
  for (const name of mapped.filter((candidate) => !(candidate in fields))) {
    problems.push({ path: ['fields', name], message: `is required with ${mark}` });
  }
  if (problems.length > 0) return problems;
  if (mapProvider !== undefined && mapProvider !== fields['mapProvider']) {
    problems.push({ path: ['mapProvider'], message: 'differs from fields.mapProvider' });
  }
  if (Array.isArray(IOMappings) && !IOMappings.includes(fields['IOMapping'])) {
    problems.push({ path: ['IOMappings'], message: 'must contain fields.IOMapping' });
  }
  return problems;
}
