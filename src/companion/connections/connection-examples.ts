// An example body for each kind of connection, for the OpenAPI document.

const api = {
  provider: 'API',
  endpointUrl: 'https://models.example.com/v1/answers',
  headers: [{ key: 'x-team', value: 'voice' }],
  LLM_API_URL: 'https://models.example.com/v1/answers',
  LLM_API_KEY: 'llm-0123456789',
  status: 'FINALIZED',
  isEnable: true,
};
const fields = {
  BASE_URL: 'https://models.example.com/v1',
  API_KEY: 'sk-0123456789',
  MODEL_NAME: 'house-7b',
};

export const newConnectionExamples = [
  {
    provider: 'VendorA AI',
    connectionName: 'Summaries',
    model: 'large-2',
    fields: { API_KEY: 'sk-0123456789' },
  },
  {
    provider: 'HostedVendorA AI',
    connectionName: 'Hosted summaries',
    model: 'large-2',
    modelType: 'EASY_INTEGRATION',
    fields: {
      API_KEY: 'sk-0123456789',
      api_version: '2026-02-01',
      your_resource_name: 'acme-models',
      deployment_id: 'large-2-eu',
    },
  },
  {
    ...api,
    connectionName: 'Our own model',
    fields,
    promptVars: [
      {
        name: 'question',
        displayName: 'Question',
        status: true,
        dataType: 'string',
        elementType: 'textbox',
        defaultValue: '',
        required: true,
      },
    ],
    customVars: [],
    payload: { messages: [{ role: 'user', content: '{{question}}' }] },
    outputPath: 'choices[0].message.content',
    inputTokensPath: 'usage.prompt_tokens',
    outputTokensPath: 'usage.completion_tokens',
  },
  {
    ...api,
    connectionName: 'A model like those of VendorA',
    fields: { ...fields, IOMapping: 'textToText', mapProvider: 'vendorAModel' },
    idp: 'none',
    bodyTab: 'providerReferences',
    mapProvider: 'vendorAModel',
    llmFeatures: { toolCalling: true, streaming: false },
    IOMappings: ['textToText'],
  },
];
