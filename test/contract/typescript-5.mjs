// Runs openapi-typescript with TypeScript 5. It writes types with the compiler's JavaScript API,
// which TypeScript 7 does not have.

import { register } from 'node:module';

const hook = `export const resolve = (specifier, context, next) =>
  next(specifier === 'typescript' ? 'typescript-5' : specifier, context);`;

register(`data:text/javascript,${encodeURIComponent(hook)}`);
