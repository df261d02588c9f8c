// The version of the package, for User-Agent headers and the OpenAPI document. A test holds it to package.json.

export const version = '0.2.0';
