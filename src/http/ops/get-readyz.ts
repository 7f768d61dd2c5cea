/** `GET /readyz`: whether this server may get traffic, part by part; 503 when a required part is not ok. */
import type { Route } from '../route.ts';
import { type ReadinessPart, readReadiness } from './readiness.ts';

export function getReadyz(parts: readonly ReadinessPart[]): Route {
  return {
    method: 'GET',
    path: '/readyz',
    async handle(ctx) {
      const readiness = await readReadiness(parts);
      ctx.status = readiness.ready ? 200 : 503;
      ctx.body = readiness;
    },
  };
}
