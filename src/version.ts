// The version of the package, for User-Agent headers and the OpenAPI and AsyncAPI documents. A test
// holds it to package.json.

export const version = '0.9.0';
