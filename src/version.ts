// The version of the package, for User-Agent headers and the OpenAPI and AsyncAPI documents. A test
// compares it with package.json.

export const version = '0.9.0';
