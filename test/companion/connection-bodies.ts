// Bodies that the specification allows: one of each form, with every member that it lists.

export const apiKey = 'sk-the-whole-secret-9';
export const maskedKey = 's************9';

export const vendorA = {
  provider: 'VendorA AI',
  connectionName: 'Summaries',
  model: 'large-2',
  fields: { API_KEY: apiKey },
};

export const vendorB = {
  provider: 'VendorB',
  connectionName: 'Answers',
  model: 'wise-1',
  modelType: 'EASY_INTEGRATION',
  fields: { API_KEY: apiKey },
};

export const hostedVendorA = {
  provider: 'HostedVendorA AI',
  connectionName: 'Hosted',
  model: 'large-2',
  modelType: 'EASY_INTEGRATION',
  fields: {
    API_KEY: apiKey,
    api_version: '2026-02-01',
    your_resource_name: 'acme-models',
    deployment_id: 'large-2-eu',
  },
};

const api = {
  provider: 'API',
  connectionName: 'Our own',
  fields: {
    BASE_URL: 'https://models.example.com/v1',
    API_KEY: apiKey,
    MODEL_NAME: 'house-7b',
  },
  LLM_API_URL: 'https://models.example.com/v1/answers',
  LLM_API_KEY: 'llm-the-other-secret-8',
  endpointUrl: 'https://models.example.com/v1/answers',
  headers: [
    { key: 'authorization', value: 'Bearer the-header-secret-7' },
    { key: 'x-team', value: 'short-6' },
  ],
  status: 'FINALIZED',
  isEnable: true,
};

export const customApi = {
  ...api,
  promptVars: [
    {
      name: 'question',
      displayName: 'The question',
      status: true,
      dataType: 'string',
      elementType: 'textbox',
      defaultValue: '',
      required: true,
      examples: false,
    },
  ],
  customVars: ['anything', { nested: [1, null] }],
  payload: { messages: [{ role: 'user', content: '{{question}}' }], temperature: 0.2 },
  outputPath: 'choices[0].message.content',
  inputTokensPath: 'usage.prompt_tokens',
  outputTokensPath: 'usage.completion_tokens',
};

export const existingApi = {
  ...api,
  fields: { ...api.fields, IOMapping: 'textToText', mapProvider: 'vendorAModel' },
  idp: 'none',
  bodyTab: 'providerReferences',
  mapProvider: 'vendorAModel',
  llmFeatures: {
    toolCalling: true,
    supportTools: true,
    parallelToolCalling: false,
    structuredResponse: true,
    dataGeneration: false,
    streaming: true,
  },
  IOMappings: ['textToText', 'imageToText'],
};

/** The existing-provider form with its mapping in only one place. The specification names two. */
export function onlyIn(place: 'fields' | 'body') {
  const { mapProvider, IOMappings, ...rest } = existingApi;
  return place === 'fields' ? rest : { ...rest, fields: api.fields, mapProvider, IOMappings };
}

export const everyShape = { vendorA, vendorB, hostedVendorA, customApi, existingApi };

export const secretTexts = [
  'the-whole-secret',
  'the-other-secret',
  'the-header-secret',
  'short-6',
  'the-next-secret',
] as const;
