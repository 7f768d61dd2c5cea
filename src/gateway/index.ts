/** The door of src/gateway: main.ts builds a gateway from these. */
import type { Clock } from '../kernel/clock.ts';
import { DemoProvider } from './demo/demo-provider.ts';
import { HttpProvider } from './http-provider.ts';
import type { ModelBounds, ModelConfig } from './model-config.ts';
import type { Provider } from './provider.ts';

export type { CallBounds } from './calls-in-flight.ts';
export { createGateway, type Gateway, type GatewayOptions, type GatewayStats } from './gateway.ts';
export { DEMO, type ModelBounds, type ModelConfig, type ProviderConfig } from './model-config.ts';
export type { Provider } from './provider.ts';

/** The provider of a configuration; the demo model when there is none. */
export function createProvider(config: ModelConfig, bounds: ModelBounds, clock: Clock): Provider {
  return config === 'demo' ? new DemoProvider(clock) : new HttpProvider(config, bounds);
}
