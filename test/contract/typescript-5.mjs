// For openapi-typescript, which writes types by the compiler's JavaScript API: TypeScript 7 has none, so that it gets version 5.

import { register } from 'node:module';

const hook = `export const resolve = (specifier, context, next) =>
  next(specifier === 'typescript' ? 'typescript-5' : specifier, context);`;

register(`data:text/javascript,${encodeURIComponent(hook)}`);
