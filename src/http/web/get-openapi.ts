/** `GET /openapi.json`: the description of this wire. The same bytes as the tracked openapi.json. */
import { buildOpenApi } from '../openapi.ts';
import type { Route } from '../route.ts';

export function getOpenApi(): Route {
  let document: string | undefined;
  return {
    method: 'GET',
    path: '/openapi.json',
    handle(ctx) {
      document ??= `${JSON.stringify(buildOpenApi(), null, 2)}\n`;
      ctx.type = 'application/json';
      ctx.body = document;
    },
  };
}
